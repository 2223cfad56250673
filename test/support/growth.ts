/**
 * How much something has grown that goes up and down all the time, as memory does between collections and a log between two cleanings. Judged by the second half of a run, when caches are
 * full and code is compiled: the half is cut into windows, each window is as low as its lowest sample, and the slope through these lows is the median of those between any two of
 * them (Sen, "Estimates of the regression coefficient based on Kendall's tau", JASA 1968), so that one window with a burst changes nothing.
 */

const WINDOWS = 8;

/** A value at a time, in any unit. */
export interface TimedValue {
  readonly at: number;
  readonly value: number;
}

/** By how much the value has grown in the second half of the samples, in its own unit; negative: it has shrunk. Throws where there are fewer than two samples a window. */
export function growthOf(samples: readonly TimedValue[]): number {
  const half = samples.slice(Math.floor(samples.length / 2));
  if (half.length < 2 * WINDOWS) throw new Error(`${samples.length} samples are too few: ${4 * WINDOWS} at least`);
  const lows = Array.from({ length: WINDOWS }, (_, k) => {
    const window = half.slice(Math.floor((k * half.length) / WINDOWS), Math.floor(((k + 1) * half.length) / WINDOWS));
    return {
      at: window.reduce((sum, { at }) => sum + at, 0) / window.length,
      value: Math.min(...window.map(({ value }) => value)),
    };
  });
  const slopes = lows.flatMap((a, i) => lows.slice(i + 1).map((b) => (b.value - a.value) / (b.at - a.at)));
  slopes.sort((a, b) => a - b);
  const middle = (slopes[Math.floor((slopes.length - 1) / 2)] + slopes[Math.floor(slopes.length / 2)]) / 2;
  return middle * (half[half.length - 1].at - half[0].at);
}
