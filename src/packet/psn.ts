/**
 * 24-bit packet sequence numbers (IBTA vol. 1 §9.7.1). All arithmetic is modulo 2^24; comparing PSNs with `<` is always
 * a bug, because a connection wraps after 16 Mi packets and start values are random.
 */

/** The low 24 bits, and the highest PSN. */
export const PSN_MASK = 0xffffff;
/** Number of PSNs: the range of a random start value. */
export const PSN_COUNT = PSN_MASK + 1;
/** A PSN this far ahead or further counts as behind: the half-window of the sequence space. */
export const PSN_HALF = 0x800000;

/** `psn + count`, wrapped. `count` may be negative. */
export function psnAdd(psn: number, count: number): number {
  return (psn + count) & PSN_MASK;
}

/** Signed distance a - b in [-2^23, 2^23): negative when `a` is older than `b`, 0 when equal, positive when newer. */
export function psnDiff(a: number, b: number): number {
  return ((a - b) << 8) >> 8;
}

/** PSNs from `first` forward to `psn`: 0..2^24 - 1. */
export function psnOffset(psn: number, first: number): number {
  return (psn - first) & PSN_MASK;
}

/** True when first <= psn <= last in sequence order (the range is shorter than 2^23). */
export function psnInRange(psn: number, first: number, last: number): boolean {
  return psnOffset(psn, first) <= psnOffset(last, first);
}
