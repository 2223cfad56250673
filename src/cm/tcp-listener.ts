/**
 * A TCP port for exchanges before RDMA is available. It survives errors of single connections, and a lack of file
 * descriptors.
 */

import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { RoceError } from '../core/errors.js';
import { DescriptorLimit } from './descriptor-limit.js';

/**
 * Most connections that wait for the event loop. The system may lower this bound; beyond it, clients wait for seconds.
 */
const BACKLOG = 4096;

export interface TcpListenerEvents {
  onSocket(socket: Socket): void;
  makeRoom?(): boolean;
  onTrouble?(error: RoceError): void;
}

export class TcpListener {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async open(
    { host, port }: { readonly host?: string | undefined; readonly port: number },
    { onSocket, makeRoom, onTrouble }: TcpListenerEvents,
  ): Promise<TcpListener> {
    const descriptors = new DescriptorLimit();
    const server = createServer((socket) => {
      let missing = descriptors.missing();
      while (missing > 0 && makeRoom?.() === true) missing--;
      if (missing === 0) {
        onSocket(socket);
        return;
      }
      socket.on('error', () => {});
      socket.destroy();
      onTrouble?.(outOfDescriptors(descriptors.max));
    });
    server.listen({ port, backlog: BACKLOG, ...(host !== undefined && { host }) });
    try {
      await once(server, 'listening');
    } catch (error) {
      const where = host === undefined ? `TCP port ${port}` : `${host}:${port}`;
      const hint =
        (error as NodeJS.ErrnoException).code === 'EADDRINUSE'
          ? 'another program listens there: choose another port'
          : undefined;
      throw new RoceError('ERR_ROCE_IO', `cannot listen on ${where}: ${(error as Error).message}`, hint);
    }
    // Errors are also emitted, although `accept` reports them; without an event listener they would end the process.
    server.on('error', (cause) =>
      onTrouble?.(
        new RoceError(
          'ERR_ROCE_IO',
          `a connection could not be accepted: ${cause.message}`,
          'the listener continues; is `ulimit -n` too low for the connections of this process?',
          { cause },
        ),
      ),
    );
    return new TcpListener(server);
  }

  get port(): number {
    return (this.#server.address() as { port: number } | null)?.port ?? 0;
  }

  close(): void {
    this.#server.close();
  }
}

function outOfDescriptors(limit: number): RoceError {
  return new RoceError(
    'ERR_ROCE_IO',
    `a connection was refused: this process may open ${limit} files, and has nearly as many`,
    'raise `ulimit -n`, or close connections; the listener accepts again when descriptors are free',
  );
}
