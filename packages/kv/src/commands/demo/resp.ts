/** As much of Redis's protocol (RESP 2, inline commands) as GET and SET need, for both ends: the same client asks Redis and our node:net server. */

import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** Pipelined commands over one connection. */
export class RespClient {
  readonly #socket: Socket;
  readonly #waiting: Array<{ readonly resolve: (text: string) => void; readonly reject: (error: Error) => void }> = [];
  #rest = '';

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true).setEncoding('latin1');
    socket.on('data', (text: string) => this.#take(text));
    socket.on('error', () => {}); // `close` follows.
    socket.on('close', () => {
      for (const { reject } of this.#waiting.splice(0)) reject(new Error('the server has closed the connection'));
    });
  }

  /** Connects to a port of loopback. */
  static async open(port: number): Promise<RespClient> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new RespClient(socket);
  }

  /** Resolves to the answer. Words have no spaces. Rejects with an error of the server, and when the connection ends. */
  command(...words: string[]): Promise<string> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#socket.write(`${words.join(' ')}\r\n`);
    });
  }

  #take(text: string): void {
    this.#rest += text;
    for (;;) {
      const lineEnd = this.#rest.indexOf('\r\n');
      if (lineEnd < 0) return;
      const line = this.#rest.slice(1, lineEnd);
      const isBulk = this.#rest.startsWith('$');
      const end = isBulk ? lineEnd + 2 + Number(line) : lineEnd;
      if (this.#rest.length < end + 2) return;
      const answer = isBulk ? this.#rest.slice(lineEnd + 2, end) : line;
      const isError = this.#rest.startsWith('-');
      this.#rest = this.#rest.slice(end + 2);
      const waiting = this.#waiting.shift();
      if (isError) waiting?.reject(new Error(answer));
      else waiting?.resolve(answer);
    }
  }

  /** Ends the connection. */
  close(): void {
    this.#socket.destroy();
  }
}

/** Answers `GET key` on a port of loopback that the system chooses. */
export async function serveResp(get: (key: string) => string): Promise<Server> {
  const server = createServer((socket) => {
    let rest = '';
    socket.setNoDelay(true).setEncoding('latin1');
    socket.on('error', () => {}); // The reader has gone.
    socket.on('data', (text: string) => {
      const lines = (rest + text).split('\r\n');
      rest = lines.pop()!;
      const answers = lines.map((line) => get(line.split(' ')[1]));
      socket.write(answers.map((value) => `$${value.length}\r\n${value}\r\n`).join(''));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
