import { finiteOrNull } from '../../core/finite.js';

export interface AllowedRate {
  readonly rateBps: number | null;
  readonly targetRateBps: number | null;
  /** DCQCN's estimate of congestion, 0..1; null for other schemes. */
  readonly alpha: number | null;
}

export const UNLIMITED_RATE: AllowedRate = { rateBps: null, targetRateBps: null, alpha: null };

/** From the numbers of the NIC, where Infinity is not limited and NaN is not there. */
export function allowedRate(rate: Readonly<Record<keyof AllowedRate, number>>): AllowedRate {
  const { rateBps, targetRateBps, alpha } = rate;
  return { rateBps: finiteOrNull(rateBps), targetRateBps: finiteOrNull(targetRateBps), alpha: finiteOrNull(alpha) };
}
