/** The processes of the demonstration: an owner, a reader of each kind, and Redis where there is one. */

import { ChildService, whileAlive } from '@rocev2/command';
import type { DemoOwnerService } from './owner-process.js';
import { PacedGets, type Sample } from './paced-gets.js';
import type { DemoReaderService } from './reader-process.js';
import { RedisServer } from './redis-server.js';
import type { Turns } from './result.js';
import { KEYS, keyFor } from './values.js';

const OWNER_PROGRAM = new URL('./owner-process.js', import.meta.url);
const READER_PROGRAM = new URL('./reader-process.js', import.meta.url);

/** One way to read. */
interface Reader {
  readonly name: string;
  start(): Promise<void> | void;
  worstNs(sinceNs: number): Promise<number> | number;
  end(): Promise<readonly Sample[]> | readonly Sample[];
}

/** Everything that runs. Closing it ends all of it, also what is just being started. */
export class DemoRig implements AsyncDisposable {
  readonly #owner = new ChildService<DemoOwnerService>('the owner', OWNER_PROGRAM);
  readonly #processes: Array<ChildService<DemoReaderService>> = [];
  readonly #readers: Reader[] = [];
  #redis: Promise<RedisServer | undefined> | undefined;
  /** There is a Redis server on this machine. */
  hasRedis = false;

  /** Starts all processes and connects them. Rejects with the end of any of them. */
  async start(perSecond: number): Promise<true> {
    this.#redis = RedisServer.start();
    const { kvPort, netPort } = await this.#whileAlive(this.#owner.call('open', {}));
    const redis = await this.#redis;
    this.hasRedis = redis !== undefined;
    const kinds = [
      { kind: 'kv', name: 'rocev2/kv', port: kvPort },
      { kind: 'net', name: 'node:net', port: netPort },
      ...(redis === undefined ? [] : [{ kind: 'redis', name: 'Redis', port: redis.port } as const]),
    ] as const;
    for (const { kind, name, port } of kinds) {
      const reader = new ChildService<DemoReaderService>(`the reader by ${name}`, READER_PROGRAM);
      this.#processes.push(reader);
      await this.#whileAlive(reader.call('open', { kind, port, perSecond }));
      this.#readers.push({
        name,
        start: () => reader.call('start', {}),
        worstNs: (sinceNs) => reader.call('worstNs', { sinceNs }),
        end: () => reader.call('end', {}),
      });
    }
    // This process is the owner's parent: it asks by the channel between them.
    const gets = new PacedGets((key) => this.#owner.call('get', { key: keyFor(key) }), perSecond, KEYS);
    this.#readers.splice(2, 0, {
      name: 'cluster IPC',
      start: () => gets.start(),
      worstNs: (sinceNs) => gets.worstNs(sinceNs),
      end: () => gets.end(),
    });
    return true;
  }

  /** The readers begin to ask, and the owner to compute in turns. */
  async begin(idleNs: number, busyNs: number): Promise<Turns> {
    await this.#whileAlive(Promise.all(this.#readers.map(async (reader) => reader.start())));
    return { startNs: await this.#whileAlive(this.#owner.call('begin', { idleNs, busyNs })), idleNs, busyNs };
  }

  /** The slowest GET of each reader since then, by name. */
  worstNs(sinceNs: number): Promise<Array<readonly [name: string, ns: number]>> {
    const looks = this.#readers.map(async ({ name, worstNs }) => [name, await worstNs(sinceNs)] as const);
    return this.#whileAlive(Promise.all(looks));
  }

  /** The readers ask no more. Rejects for a wrong value, and for a GET that has failed. */
  end(): Promise<Array<{ readonly name: string; readonly samples: readonly Sample[] }>> {
    const ends = this.#readers.map(async ({ name, end }) => ({ name, samples: await end() }));
    return this.#whileAlive(Promise.all(ends));
  }

  #whileAlive<T>(work: Promise<T>): Promise<T> {
    return whileAlive([this.#owner, ...this.#processes], work);
  }

  /** Ends everything. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#owner, ...this.#processes].map((child) => child.stop()));
    await (await this.#redis)?.[Symbol.asyncDispose]();
  }
}
