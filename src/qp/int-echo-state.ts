/**
 * The receiver's half of in-band telemetry (packet/int-trailer.ts): keeps the trailer of the newest data packet, and
 * counts marks, until an acknowledgement returns both to the sender. Counts are totals since the connection began, so
 * that they survive a lost acknowledgement, as in Accurate ECN (RFC 9768).
 */

import {
  type EchoCounts,
  INT_DATA_HOPS,
  INT_ECHO,
  INT_NONE,
  intTrailerBytes,
  writeEchoTrailer,
} from '../packet/int-trailer.js';
import type { RocePacket } from '../packet/roce.js';

const NO_BYTES = new Uint8Array(0);
const U32_MAX = 0xffff_ffff;

export class IntEchoState {
  #kind: number = INT_NONE;
  /** Allocated with the first trailer, because few queue pairs get one. */
  #trailer = NO_BYTES;
  #arrivedNs = 0;
  #isPending = false;
  readonly #counts: EchoCounts = { residenceNs: 0, received: 0, marked: 0, isMarked: false, granted: 0 };

  get kind(): number {
    return this.#kind;
  }

  get isPending(): boolean {
    return this.#isPending;
  }

  reset(): void {
    this.#isPending = false;
    this.#counts.received = 0;
    this.#counts.marked = 0;
    this.#counts.granted = 0;
    this.#kind = INT_NONE;
  }

  /**
   * Credit has been granted, `granted` packets since the connection began: the newest trailer, if any, is echoed once
   * more.
   */
  grant(granted: number): void {
    this.#counts.granted = granted;
    if (this.#kind !== INT_NONE) this.#isPending = true;
  }

  /** A data packet with a trailer has arrived, in `b`; `isMarked`: a switch has marked it CE. */
  onData(packet: RocePacket, b: Uint8Array, isMarked: boolean, now: number): void {
    const { trailerOffset, trailerBytes } = packet;
    const kind = b[trailerOffset + trailerBytes - 4] >> 4;
    if ((kind & INT_ECHO) !== 0) return;
    if (this.#trailer === NO_BYTES) this.#trailer = new Uint8Array(intTrailerBytes(INT_DATA_HOPS));
    for (let i = 0; i < trailerBytes; i++) this.#trailer[i] = b[trailerOffset + i];
    const counts = this.#counts;
    this.#kind = kind;
    this.#arrivedNs = now;
    counts.received = (counts.received + 1) >>> 0;
    counts.isMarked = isMarked;
    if (isMarked) counts.marked = (counts.marked + 1) >>> 0;
    this.#isPending = true;
  }

  /** Returns the end: `at` when nothing is pending. */
  append(b: Uint8Array, packet: number, at: number, now: number): number {
    if (!this.#isPending) return at;
    this.#isPending = false;
    this.#counts.residenceNs = Math.min(U32_MAX, Math.max(0, Math.round(now - this.#arrivedNs)));
    return writeEchoTrailer(b, packet, at, this.#kind, this.#trailer, this.#counts);
  }
}
