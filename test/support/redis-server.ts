/** A Redis server of our own on a port of loopback, where this machine has one. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

const READY = /Ready to accept connections/;

/** A server that keeps nothing on a disk. */
export class RedisServer implements AsyncDisposable {
  /** TCP port of 127.0.0.1. */
  readonly port: number;
  readonly #process: ChildProcess;
  readonly #kill = () => this.#process.kill('SIGKILL');

  private constructor(port: number, process_: ChildProcess) {
    this.port = port;
    this.#process = process_;
    process.once('exit', this.#kill);
  }

  /** Starts `redis-server`; undefined if there is none, or it does not run. */
  static async start(): Promise<RedisServer | undefined> {
    const port = await freePort();
    const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
    const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'] });
    let text = '';
    const isReady = new Promise<boolean>((resolve) => {
      child.once('error', () => resolve(false));
      child.once('exit', () => resolve(false));
      child.stdout.setEncoding('utf8').on('data', (more: string) => {
        text = (text + more).slice(-1000);
        if (READY.test(text)) resolve(true);
      });
    });
    return (await isReady) ? new RedisServer(port, child) : undefined;
  }

  /** Ends it. */
  async [Symbol.asyncDispose](): Promise<void> {
    process.off('exit', this.#kill);
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exited = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await exited;
  }
}

/** A port that nobody used a moment ago: Redis cannot let the system choose. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
