/**
 * A barrier for the threads of a divided run: each brings a time and all leave with the minimum. Everything a thread
 * wrote before it is visible to all that have left.
 */

import { RoceError } from 'rocev2/internal/core';

const ARRIVED = 0;
const MEETINGS = 1;
const ABORTED = 2;
/** Looks at whether all are there before the thread sleeps: a sleep costs more than a short wait. */
const LOOKS = 2_000;
const SLEEP_MS = 5;

export interface MeetingMemory {
  readonly state: SharedArrayBuffer;
  /** Two times per thread: the first threads may be at the next meeting while others still read this one. */
  readonly times: SharedArrayBuffer;
}

export function newMeetingMemory(members: number): MeetingMemory {
  return { state: new SharedArrayBuffer(3 * 4), times: new SharedArrayBuffer(2 * members * 8) };
}

export function abort({ state }: MeetingMemory): void {
  const numbers = new Int32Array(state);
  Atomics.store(numbers, ABORTED, 1);
  Atomics.notify(numbers, MEETINGS);
}

export class Meeting {
  readonly #state: Int32Array;
  readonly #times: Float64Array;
  readonly #members: number;
  readonly #me: number;
  readonly #nowNs: () => number;
  readonly #whileWaiting: () => void;
  #isOdd = 0;
  waitedNs = 0;
  meetings = 0;

  constructor({ state, times }: MeetingMemory, me: number, nowNs: () => number, whileWaiting: () => void) {
    this.#state = new Int32Array(state);
    this.#times = new Float64Array(times);
    this.#members = this.#times.length / 2;
    this.#me = me;
    this.#nowNs = nowNs;
    this.#whileWaiting = whileWaiting;
  }

  /**
   * Waits until all are there; the least time that anybody has brought. Throws ERR_ROCE_ABORTED after {@link abort}.
   */
  meet(timeNs: number): number {
    this.meetings++;
    this.#isOdd ^= 1;
    const first = this.#isOdd * this.#members;
    const times = this.#times;
    times[first + this.#me] = timeNs;
    const meeting = Atomics.load(this.#state, MEETINGS);
    if (Atomics.add(this.#state, ARRIVED, 1) === this.#members - 1) {
      Atomics.store(this.#state, ARRIVED, 0);
      Atomics.add(this.#state, MEETINGS, 1);
      Atomics.notify(this.#state, MEETINGS);
    } else {
      const sinceNs = this.#nowNs();
      this.#wait(meeting);
      this.waitedNs += this.#nowNs() - sinceNs;
    }
    let least = times[first];
    for (let i = 1; i < this.#members; i++) if (times[first + i] < least) least = times[first + i];
    return least;
  }

  /** Throws ERR_ROCE_ABORTED after {@link abort}. */
  throwIfAborted(): void {
    if (Atomics.load(this.#state, ABORTED) !== 0) {
      throw new RoceError('ERR_ROCE_ABORTED', 'another part of the run has failed');
    }
  }

  #wait(meeting: number): void {
    for (let look = 0; look < LOOKS; look++) if (Atomics.load(this.#state, MEETINGS) !== meeting) return;
    while (Atomics.load(this.#state, MEETINGS) === meeting) {
      this.throwIfAborted();
      this.#whileWaiting();
      Atomics.wait(this.#state, MEETINGS, meeting, SLEEP_MS);
    }
  }
}
