/**
 * Measures round trips for rate controls that want to know them: from sending a packet that asks for an acknowledgement until it is
 * acknowledged. At least `sampleBytes` of data lie between two such packets, and none of them was sent twice (Karn's rule).
 */

import { psnDiff } from '../packet/psn.js';

/** Packets whose acknowledgement is awaited; more are not measured. A power of two. */
const PENDING_MAX = 256;

export class RttProbe {
  readonly #sampleBytes: number;
  #bytesLeft: number;
  readonly #psns: Uint32Array;
  readonly #sentNs: Float64Array;
  #head = 0;
  #count = 0;

  /** Infinity: measures nothing. */
  constructor(sampleBytes: number) {
    this.#sampleBytes = sampleBytes;
    this.#bytesLeft = sampleBytes;
    const pending = sampleBytes === Number.POSITIVE_INFINITY ? 0 : PENDING_MAX;
    this.#psns = new Uint32Array(pending);
    this.#sentNs = new Float64Array(pending);
  }

  /** A packet of so many new bytes should ask for an acknowledgement, so that it can be measured. */
  isDue(bytes: number): boolean {
    return bytes >= this.#bytesLeft;
  }

  /** A packet with new data has left. */
  onSent(psn: number, bytes: number, asksForAnswer: boolean, now: number): void {
    this.#bytesLeft -= bytes;
    if (!asksForAnswer || this.#bytesLeft > 0) return;
    this.#bytesLeft = this.#sampleBytes;
    if (this.#count === PENDING_MAX) return;
    const i = (this.#head + this.#count++) % PENDING_MAX;
    this.#psns[i] = psn;
    this.#sentNs[i] = now;
  }

  /** Everything before `unacked` is acknowledged. Returns the round trip of the newest packet among it in nanoseconds, or -1 if there is none. */
  onProgress(unacked: number, now: number): number {
    let rttNs = -1;
    while (this.#count > 0 && psnDiff(unacked, this.#psns[this.#head]) > 0) {
      rttNs = now - this.#sentNs[this.#head];
      this.#head = (this.#head + 1) % PENDING_MAX;
      this.#count--;
    }
    return rttNs;
  }

  /** Something is sent again: which copy an acknowledgement is about cannot be told. */
  cancel(): void {
    this.#count = 0;
  }
}
