// @ts-check
/** What is kept of many samples. */

/** @param {number[]} samples */
export function percentiles(samples) {
  const sorted = Float64Array.from(samples).sort();
  const at = (/** @type {number} */ share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  return { p50: at(0.5), p99: at(0.99) };
}

/** @param {number[]} values */
export function median(values) {
  return percentiles(values).p50;
}

/** Jain's fairness index: 1 when all are equal, 1/n when one has everything. */
export function jain(/** @type {number[]} */ values) {
  const sum = values.reduce((a, b) => a + b, 0);
  return sum ** 2 / (values.length * values.reduce((a, b) => a + b * b, 0));
}
