/**
 * Measures round trips for rate controls that want to know them: from sending a packet that asks for an acknowledgement until it is
 * acknowledged. One packet at a time, never one that was sent twice (Karn's rule), and `sampleBytes` of data between them at least.
 */

import { psnDiff } from '../packet/psn.js';

export class RttProbe {
  readonly #sampleBytes: number;
  #bytesLeft: number;
  #running = false;
  #psn = 0;
  #sentNs = 0;

  /** Infinity: measures nothing. */
  constructor(sampleBytes: number) {
    this.#sampleBytes = sampleBytes;
    this.#bytesLeft = sampleBytes;
  }

  /** The next data packet should ask for an acknowledgement, so that it can be measured. */
  get isDue(): boolean {
    return this.#bytesLeft <= 0 && !this.#running;
  }

  /** A packet with new data has left. */
  onSent(psn: number, bytes: number, asksForAnswer: boolean, now: number): void {
    this.#bytesLeft -= bytes;
    if (!asksForAnswer || !this.isDue) return;
    this.#running = true;
    this.#bytesLeft = this.#sampleBytes;
    this.#psn = psn;
    this.#sentNs = now;
  }

  /** Everything before `unacked` is acknowledged. Returns the round trip in nanoseconds, or -1 when none has ended. */
  onProgress(unacked: number, now: number): number {
    if (!this.#running || psnDiff(unacked, this.#psn) <= 0) return -1;
    this.#running = false;
    return now - this.#sentNs;
  }

  /** Something is sent again: which copy an acknowledgement is about cannot be told. */
  cancel(): void {
    this.#running = false;
  }
}
