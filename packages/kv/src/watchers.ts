/** A slow watcher loses changes and is notified of that; it delays nothing else. */

import type { KvEvent } from './kv.js';
import type { StoreChange } from './store.js';

const PENDING_MAX = 1024;
const LOST: KvEvent = { kind: 'lost', key: Buffer.alloc(0), version: 0 };

interface Watcher {
  readonly prefix: Buffer;
  readonly pending: KvEvent[];
  wake: () => void;
}

export class Watchers {
  readonly #watchers = new Set<Watcher>();
  #isClosed = false;

  get size(): number {
    return this.#watchers.size;
  }

  tell(change: StoreChange): void {
    for (const { prefix, pending, wake } of this.#watchers) {
      if (!change.key.subarray(0, prefix.length).equals(prefix)) continue;
      if (pending.length < PENDING_MAX) pending.push(change);
      else if (pending.at(-1) !== LOST) pending.push(LOST);
      wake();
    }
  }

  async *watch(prefix: Buffer, signal?: AbortSignal, isResumed = false): AsyncGenerator<KvEvent, void, undefined> {
    const watcher: Watcher = { prefix, pending: isResumed ? [LOST] : [], wake: () => {} };
    this.#watchers.add(watcher);
    const onAbort = () => watcher.wake();
    signal?.addEventListener('abort', onAbort);
    try {
      while (!this.#isClosed && signal?.aborted !== true) {
        yield* watcher.pending.splice(0);
        if (watcher.pending.length > 0) continue;
        await new Promise<void>((resolve) => {
          watcher.wake = resolve;
          if (this.#isClosed || signal?.aborted === true) resolve();
        });
      }
    } finally {
      signal?.removeEventListener('abort', onAbort);
      this.#watchers.delete(watcher);
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const { wake } of this.#watchers) wake();
  }
}
