import { finiteOrNull } from '../../core/finite.js';

/** What rate control allows a queue pair at a moment, as JSON can say it. */
export interface AllowedRate {
  /** Bits/s of the link; null: not limited. */
  readonly rateBps: number | null;
  /** What recovery heads for; null: not limited. */
  readonly targetRateBps: number | null;
  /** DCQCN's estimate of congestion, 0..1; null for other schemes. */
  readonly alpha: number | null;
}

/** Of a queue pair without rate control. */
export const UNLIMITED_RATE: AllowedRate = { rateBps: null, targetRateBps: null, alpha: null };

/** From the numbers of the NIC, where Infinity is not limited and NaN is not there. */
export function allowedRate(rate: Readonly<Record<keyof AllowedRate, number>>): AllowedRate {
  const { rateBps, targetRateBps, alpha } = rate;
  return { rateBps: finiteOrNull(rateBps), targetRateBps: finiteOrNull(targetRateBps), alpha: finiteOrNull(alpha) };
}
