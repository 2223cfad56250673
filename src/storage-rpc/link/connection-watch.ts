import type { Clock } from '../../core/clock.js';

interface WatchOptions {
  readonly clock: Clock;
  readonly idleNs: number;
  readonly silenceNs: number;
  readonly ask: () => void;
  readonly onSilent: () => void;
  /** Called each time it looks, before anything else; true: there is nothing more to look at. */
  readonly look: (nowNs: number) => boolean;
}

export class ConnectionWatch {
  readonly #options: WatchOptions;
  #heardNs: number;
  #asked = false;
  #cancel: (() => void) | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#heardNs = options.clock.nowNs();
    this.#schedule();
  }

  onHeard(): void {
    this.#heardNs = this.#options.clock.nowNs();
    this.#asked = false;
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #schedule(): void {
    const { clock, idleNs } = this.#options;
    const dueNs = clock.nowNs() + idleNs;
    this.#cancel = clock.wakeAt(dueNs, () => {
      this.#schedule();
      // After a late wake-up packets that arrived in the meantime are still to be read.
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
