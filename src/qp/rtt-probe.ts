/**
 * Measures round trips for rate controls that use them: from sending a packet that requests an acknowledgement until it
 * is acknowledged. Two such packets are at least `sampleBytes` of data apart, and neither was retransmitted (Karn's
 * rule). With 0, one packet per round trip is measured: the first that leaves after the previous one was acknowledged.
 */

import { psnDiff } from '../packet/psn.js';

export interface RttProbe {
  /** A packet with this many new bytes should request an acknowledgement, so that it can be measured. */
  isDue(bytes: number): boolean;
  onSent(psn: number, bytes: number, asksForAnswer: boolean, now: number): void;
  /** Returns the round trip of the newest packet among it in nanoseconds, or -1 if there is none. */
  onProgress(unacked: number, now: number): number;
  /** Something is retransmitted: which copy an acknowledgement is for is unknown. */
  cancel(): void;
}

/** Infinity: nothing is to be measured; 0: one packet at a time. */
export function createRttProbe(sampleBytes: number): RttProbe {
  if (sampleBytes === Number.POSITIVE_INFINITY) return NO_RTT_PROBE;
  return sampleBytes === 0 ? new PacketRttProbe(1, 1) : new PacketRttProbe(sampleBytes, PENDING_MAX);
}

export const NO_RTT_PROBE: RttProbe = {
  isDue: () => false,
  onSent: () => {},
  onProgress: () => -1,
  cancel: () => {},
};

const PENDING_MAX = 256;

class PacketRttProbe implements RttProbe {
  readonly #sampleBytes: number;
  readonly #pendingMax: number;
  #bytesLeft: number;
  readonly #psns = new Uint32Array(PENDING_MAX);
  readonly #sentNs = new Float64Array(PENDING_MAX);
  #head = 0;
  #count = 0;

  constructor(sampleBytes: number, pendingMax: number) {
    this.#sampleBytes = sampleBytes;
    this.#pendingMax = pendingMax;
    this.#bytesLeft = sampleBytes;
  }

  isDue(bytes: number): boolean {
    return bytes >= this.#bytesLeft && this.#count < this.#pendingMax;
  }

  onSent(psn: number, bytes: number, asksForAnswer: boolean, now: number): void {
    this.#bytesLeft -= bytes;
    if (!asksForAnswer || this.#bytesLeft > 0) return;
    this.#bytesLeft = this.#sampleBytes;
    if (this.#count === this.#pendingMax) return;
    const i = (this.#head + this.#count++) % PENDING_MAX;
    this.#psns[i] = psn;
    this.#sentNs[i] = now;
  }

  onProgress(unacked: number, now: number): number {
    let rttNs = -1;
    while (this.#count > 0 && psnDiff(unacked, this.#psns[this.#head]) > 0) {
      rttNs = now - this.#sentNs[this.#head];
      this.#head = (this.#head + 1) % PENDING_MAX;
      this.#count--;
    }
    return rttNs;
  }

  cancel(): void {
    this.#count = 0;
  }
}
