/**
 * Computes fragments for a live node or client: by ISA-L if it is installed and gives correct results, because a column
 * then takes less time than passing it to a thread; otherwise in TypeScript in a thread.
 */

import { Worker } from 'node:worker_threads';
import {
  type Combine,
  type Combiner,
  combinerOf,
  combinesRight,
  partsOf,
  portableCombine,
} from '../coding/combiner.js';
import type { CodingAnswer, CodingRequest } from './coding-thread.js';
import { isaLCombine } from './native-combine.js';

interface Waiting {
  readonly rows: readonly Uint8Array[];
  readonly sources: readonly Uint8Array[];
  readonly resolve: (sums: Buffer[] | Promise<Buffer[]>) => void;
}

let native: Combine | undefined | 'unknown' = 'unknown';

function nativeCombine(): Combine | undefined {
  if (native !== 'unknown') return native;
  try {
    const combine = isaLCombine();
    native = combinesRight(combine) ? combine : undefined;
  } catch {
    native = undefined;
  }
  return native;
}

export class CodingThread implements Combiner {
  readonly #module: URL;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #hasFailed = false;
  #lastId = 0;

  constructor(module = new URL('./coding-thread.js', import.meta.url)) {
    this.#module = module;
  }

  get isRunning(): boolean {
    return this.#worker !== undefined && !this.#hasFailed;
  }

  combine(rows: readonly Uint8Array[], sources: readonly Uint8Array[]): Promise<Buffer[]> {
    return new Promise((resolve) => this.#send({ rows, sources, resolve }));
  }

  #send(waiting: Waiting): void {
    this.#worker ??= this.#start();
    const worker = this.#worker;
    const { rows, sources, resolve } = waiting;
    if (this.#hasFailed) {
      resolve(combinerOf(portableCombine).combine(rows, sources));
      return;
    }
    const id = ++this.#lastId;
    this.#waiting.set(id, waiting);
    worker.ref(); // Keeps the process alive until the answer is here.
    const [{ length }] = sources;
    const packed = new Uint8Array(length * sources.length);
    for (const [k, source] of sources.entries()) packed.set(source, k * length);
    worker.postMessage({ id, rows, sources: packed } satisfies CodingRequest, [packed.buffer]);
  }

  #start(): Worker {
    const worker = new Worker(this.#module);
    worker.on('message', ({ id, sums }: CodingAnswer) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) worker.unref();
      waiting?.resolve(
        partsOf(sums, waiting.rows.length).map((sum) => Buffer.from(sum.buffer, sum.byteOffset, sum.length)),
      );
    });
    worker.on('error', () => this.#fail());
    worker.on('exit', () => this.#fail());
    return worker;
  }

  /** A bundle may lack the thread's module; then fragments are computed here. */
  #fail(): void {
    this.#hasFailed = true;
    const open = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const waiting of open) this.#send(waiting);
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }
}

export function openCoder(): Combiner & { close(): Promise<void> } {
  const combine = nativeCombine();
  return combine === undefined ? new CodingThread() : { ...combinerOf(combine), close: async () => {} };
}
