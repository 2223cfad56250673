/**
 * The doorbells of one program. It writes a byte to its socket when it rings while the NIC sleeps; after that the NIC
 * looks at the ring in each round of the event loop, until nothing has come for a while.
 */

import { nativeFunction } from 'rocev2/internal/dgram-ext';
import { nowNs } from 'rocev2/internal/driver';
import { DoorbellRing } from 'rocev2/internal/memory';

/** Word of the ring's header: 0 while the NIC sleeps. */
const WORD_STATE = 6;
const ASLEEP = 0;
const AWAKE = 1;
/** About as long as a program takes from a completion to its next request, where it has a processor at once. */
const LOOKS_NS = 100_000;
/** The same on a busy machine: other programs have kept the processor that the NIC had offered for {@link STALL_NS}. */
const BUSY_LOOKS_NS = 30_000;
const STALL_NS = 2e6;
const PAUSE_MIN_NS = 10e6;
const PAUSE_MAX_NS = 1e9;

/** What a program's doorbells ask for. */
export interface DoorbellUses {
  /** A queue pair has new work. */
  readonly one: (qpn: number) => void;
  /** Any of them may have. */
  readonly all: () => void;
  /** All of these doorbells have been drained. */
  readonly drained: () => void;
}

let schedYield: (() => unknown) | undefined;

export class DoorbellWatcher {
  readonly #ring: DoorbellRing;
  readonly #uses: DoorbellUses;
  readonly #yield: () => unknown;
  #isLooking = false;
  /** Of the last doorbell or completion. */
  #busyNs = 0;
  #isClosed = false;
  /** Until then the machine counts as busy. */
  #pausedUntilNs = 0;
  #pauseNs = PAUSE_MIN_NS;

  constructor(memory: ArrayBufferLike, uses: DoorbellUses) {
    this.#ring = new DoorbellRing(memory);
    this.#uses = uses;
    schedYield ??= nativeFunction('libc.so.6', 'int sched_yield()');
    this.#yield = schedYield;
  }

  /** Doorbells wait, or may come soon. */
  wake(): void {
    if (this.#isClosed) return;
    this.#busyNs = nowNs();
    if (this.#isLooking) return;
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
    const isPaused = timeNs < this.#pausedUntilNs;
    if (this.#ring.isRinging) {
      this.#ring.drain(this.#uses.one, this.#uses.all);
      this.#uses.drained();
      this.#busyNs = timeNs;
    } else if (timeNs - this.#busyNs > (isPaused ? BUSY_LOOKS_NS : LOOKS_NS)) {
      this.#setState(ASLEEP);
      if (!this.#ring.isRinging) {
        this.#isLooking = false;
        return;
      }
      this.#setState(AWAKE);
    } else if (!isPaused) this.#offerProcessor(timeNs);
    setImmediate(this.#look);
  };

  #offerProcessor(timeNs: number): void {
    this.#yield();
    const returnedNs = nowNs();
    if (returnedNs - timeNs < STALL_NS) return;
    if (timeNs - this.#pausedUntilNs > PAUSE_MAX_NS) this.#pauseNs = PAUSE_MIN_NS;
    this.#pausedUntilNs = returnedNs + this.#pauseNs;
    this.#pauseNs = Math.min(PAUSE_MAX_NS, 2 * this.#pauseNs);
  }
}
