/** The number, or null for Infinity (not limited) and NaN (no value). */
export function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
