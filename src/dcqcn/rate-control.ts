/**
 * The contract of a rate control: how fast one flow (a queue pair as data sender) may send. Queue pairs call the same methods whatever the
 * scheme; the scheme is chosen when the queue pair is connected.
 *
 * A rate is a function of time: timers run lazily, each call first advances them to `now`, so that 55 us timers are right even where the
 * event loop is coarse. `now` never runs backwards. Rates are in bits/s of the link: Ethernet with preamble and gap, IP and UDP count.
 */

/** By number: the number crosses the command ring. */
export const RATE_CONTROL_NAMES = ['none', 'fixed', 'dcqcn', 'timely', 'patched-timely'] as const;
/** Name of a rate control; docs/congestion-control.md describes them. */
export type RateControlName = (typeof RATE_CONTROL_NAMES)[number];

export interface RateControl {
  /** Data packets leave as ECT(0): the scheme listens to ECN marks. */
  readonly usesEcn: boolean;
  /** Bytes between packets whose round trip is measured; Infinity where the scheme does not want to know. */
  readonly rttSampleBytes: number;
  /** The current rate; Infinity: not limited. Never below the scheme's minimum, never above the line rate. */
  rateBps(now: number): number;
  /** The rate that recovery is heading for; the current rate where the scheme has no such thing. */
  targetRateBps(now: number): number;
  /** DCQCN's estimate of congestion, 0..1; NaN where the scheme has none. */
  alpha(now: number): number;
  /** A data packet of that many bytes on the link has left. */
  onSent(wireBytes: number, now: number): void;
  /** A congestion notification arrived. False when it changed nothing: too soon after the last one, or not this scheme's signal. */
  onCnp(now: number): boolean;
  /** A round trip was measured: from sending a packet to its acknowledgement. */
  onRttSample(rttNs: number, now: number): void;
}
