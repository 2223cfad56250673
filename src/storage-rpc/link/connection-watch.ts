/** Notices that a connection has fallen silent: asks for a sign of life first, and gives it up when there is none. */

import type { Clock } from '../../core/clock.js';

interface WatchOptions {
  readonly clock: Clock;
  /** A connection that is silent for so long is asked for a sign of life. */
  readonly idleNs: number;
  /** One that stays silent for so long has failed. */
  readonly silenceNs: number;
  /** Send something that has to be answered. */
  readonly ask: () => void;
  readonly onSilent: () => void;
  /** Called each time it looks, before anything else; true: there is nothing more to look at. */
  readonly look: (nowNs: number) => boolean;
}

/** The watch over one connection. */
export class ConnectionWatch {
  readonly #options: WatchOptions;
  #heardNs: number;
  #asked = false;
  #cancel: (() => void) | undefined;

  /** Looks every `idleNs` from now on, until `stop`. */
  constructor(options: WatchOptions) {
    this.#options = options;
    this.#heardNs = options.clock.nowNs();
    this.#schedule();
  }

  /** Something came from the peer. */
  onHeard(): void {
    this.#heardNs = this.#options.clock.nowNs();
    this.#asked = false;
  }

  /** Looks no more. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #schedule(): void {
    const { clock, idleNs } = this.#options;
    const dueNs = clock.nowNs() + idleNs;
    this.#cancel = clock.wakeAt(dueNs, () => {
      this.#schedule();
      // Who wakes late has not listened: what was said and answered meanwhile is still to be read.
      if (clock.nowNs() - dueNs > idleNs) this.#heardNs = clock.nowNs();
      else this.#look();
    });
  }

  #look(): void {
    const { clock, idleNs, silenceNs, ask, onSilent, look } = this.#options;
    const now = clock.nowNs();
    if (look(now)) return;
    if (now - this.#heardNs >= silenceNs) onSilent();
    else if (now - this.#heardNs >= idleNs && !this.#asked) {
      this.#asked = true;
      ask();
    }
  }
}
