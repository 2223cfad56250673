/**
 * The doorbells of one program. It writes a byte to its socket when it rings while the NIC sleeps; after that the NIC
 * looks at the ring in each round of the event loop, until nothing has come for a while.
 */

import { nowNs } from 'rocev2/internal/driver';
import { DoorbellRing } from 'rocev2/internal/memory';

/** Word of the ring's header: 0 while the NIC sleeps. */
const WORD_STATE = 6;
const ASLEEP = 0;
const AWAKE = 1;
/** About as long as a program takes from a completion to its next request. */
const LOOKS_NS = 30_000;

export class DoorbellWatcher {
  readonly #ring: DoorbellRing;
  readonly #one: (qpn: number) => void;
  readonly #all: () => void;
  #isLooking = false;
  #rangNs = 0;
  #isClosed = false;

  /** `one`: a queue pair has new work; `all`: any of them may. */
  constructor(memory: ArrayBufferLike, one: (qpn: number) => void, all: () => void) {
    this.#ring = new DoorbellRing(memory);
    this.#one = one;
    this.#all = all;
  }

  wake(): void {
    if (this.#isLooking || this.#isClosed) return;
    this.#isLooking = true;
    this.#setState(AWAKE);
    this.#look();
  }

  /** The memory is not touched afterwards. */
  close(): void {
    this.#isClosed = true;
  }

  #setState(state: number): void {
    Atomics.store(this.#ring.header, WORD_STATE, state);
  }

  readonly #look = (): void => {
    if (this.#isClosed) return;
    const timeNs = nowNs();
    if (this.#ring.isRinging) {
      this.#ring.drain(this.#one, this.#all);
      this.#rangNs = timeNs;
    } else if (timeNs - this.#rangNs > LOOKS_NS) {
      this.#setState(ASLEEP);
      if (!this.#ring.isRinging) {
        this.#isLooking = false;
        return;
      }
      this.#setState(AWAKE);
    }
    setImmediate(this.#look);
  };
}
