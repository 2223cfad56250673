import { checkKind } from '../core/arguments.js';
import type { ReleasePolicy } from './release-policy.js';
import type { WindowLink } from './window-link.js';

/** Empties a block. The bytes are valid until the function returns, or until its promise resolves. */
export type BlockConsumer = (bytes: Uint8Array, id: number) => void | Promise<void>;

export function checkConsumer(policy: ReleasePolicy, onBlock: BlockConsumer): void {
  checkKind('policy', policy, typeof policy?.onFreed === 'function', 'a ReleasePolicy: new NoDelayPolicy()');
  checkKind('onBlock', onBlock, typeof onBlock === 'function', 'a function');
}

export class BlockReleaser {
  acknowledgements = 0;
  readonly #link: WindowLink;
  readonly #policy: ReleasePolicy;
  readonly #consume: BlockConsumer;
  #version = 0;
  #wakeNs = Number.POSITIVE_INFINITY;
  #cancelWake = () => {};

  constructor(link: WindowLink, policy: ReleasePolicy, consume: BlockConsumer) {
    this.#link = link;
    this.#policy = policy;
    this.#consume = consume;
  }

  set version(version: number) {
    this.#version = version;
  }

  take(id: number, bytes: Uint8Array, onFreed: () => void): void {
    this.#policy.onUsed(id);
    const free = () => {
      onFreed();
      this.#policy.onFreed(id, this.#link.clock.nowNs());
      this.#acknowledge();
    };
    try {
      const pending = this.#consume(bytes, id);
      if (pending === undefined) free();
      else pending.then(free, (error: Error) => this.#link.fail(error));
    } catch (error) {
      this.#link.fail(error as Error);
    }
  }

  close(): void {
    this.#cancelWake();
  }

  #acknowledge(): void {
    const now = this.#link.clock.nowNs();
    for (let ack = this.#policy.due(now); ack !== undefined; ack = this.#policy.due(now)) {
      this.acknowledgements++;
      const type = 'id' in ack ? 'ACK_ID' : 'ACK_COUNT';
      this.#link.send({ type, version: this.#version, ...ack });
    }
    this.#wakeAt(this.#policy.deadlineNs);
  }

  #wakeAt(timeNs: number): void {
    if (timeNs >= this.#wakeNs) return; // An early wake-up finds nothing due and sets the timer again.
    this.#cancelWake();
    this.#wakeNs = timeNs;
    this.#cancelWake = this.#link.clock.wakeAt(timeNs, () => {
      this.#wakeNs = Number.POSITIVE_INFINITY;
      this.#acknowledge();
    });
  }
}
