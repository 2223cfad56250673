import { type Column, leftAligned, rightAligned } from '@rocev2/command';
import { renderLineChart } from '@rocev2/command/plot';
import { differenceOf, type Figure, type FigureRun, type FigureValue, toleranceOf } from './figure.js';

/** What is known of a figure without running it. */
interface FigureEntry extends Pick<Figure, 'name' | 'title' | 'source' | 'by'> {
  /** The part by which ours may differ, 0..1: 0.05 for fluid models, 0.1 for packets. */
  readonly tolerance: number;
}

/** The fields of `sim figure --json`. */
export interface FigureResults {
  /** The figure that was run; with --list all of them. */
  readonly figures: readonly ListedFigure[];
}

/** A value, and whether ours is inside. */
export interface JudgedValue extends FigureValue {
  /** (ours - published) / |published|. */
  readonly difference: number;
  /** Whether ours differs by no more than the tolerance. */
  readonly verdict: 'inside' | 'outside';
}

/** A figure, run or not. */
export interface ListedFigure extends FigureEntry {
  /** Why ours differs, where it does and the reason is known; null if there is nothing to say. */
  readonly note: string | null;
  /** Every value compared; null if it was not run. */
  readonly values: readonly JudgedValue[] | null;
}

export interface FigureResult extends ListedFigure {
  readonly values: readonly JudgedValue[];
}

export function listedFigure(figure: Figure): ListedFigure {
  const { name, title, source, by, note = null } = figure;
  return { name, title, source, by, tolerance: toleranceOf(figure), note, values: null };
}

export function figureResult(figure: Figure, { values }: FigureRun): FigureResult {
  const tolerance = toleranceOf(figure);
  return {
    ...listedFigure(figure),
    values: values.map((value) => {
      const difference = differenceOf(value);
      return { ...value, difference, verdict: Math.abs(difference) <= tolerance ? 'inside' : 'outside' };
    }),
  };
}

export const FIGURE_COLUMNS: readonly Column[] = [
  ...leftAligned('Value'),
  ...rightAligned('Published', 'Ours'),
  ...leftAligned(''),
  ...rightAligned('Difference'),
  ...leftAligned('Verdict'),
];

export function figureRow({ what, unit, published, ours, difference, verdict }: JudgedValue): string[] {
  const percent = `${difference >= 0 ? '+' : ''}${(100 * difference).toFixed(1)} %`;
  return [what, shown(published), shown(ours), unit, percent, verdict];
}

function shown(value: number): string {
  return String(Number(value.toPrecision(4)));
}

export function figureChart({ title, source }: Figure, { chart }: FigureRun): string {
  return renderLineChart({ title, subtitle: source, ...chart });
}
