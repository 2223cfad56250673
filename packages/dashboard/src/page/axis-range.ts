/** Of the values at its ends: between closer ones a double has too few steps for ticks. */
const NARROWEST = 1e-12;
const WIDTH_OF_A_MOMENT = 1;

/**
 * Both may be the same moment, as of a program that has just appeared: such an axis has no ticks, and uPlot would look
 * for them until memory ends. Therefore it gets a width. null: there is nothing to show.
 */
export function axisRange(from: number | null, to: number | null): [number | null, number | null] {
  if (from === null || to === null || to - from > NARROWEST * Math.max(Math.abs(to), 1)) return [from, to];
  return [from - WIDTH_OF_A_MOMENT / 2, from + WIDTH_OF_A_MOMENT / 2];
}
