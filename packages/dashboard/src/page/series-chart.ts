/** A chart over time whose series come and go: it is drawn anew when their names change. */

import { element } from './dom.js';
import { type Stretch, TimeChart } from './time-chart.js';

/** One chart at a time, made for the names shown last. */
export class SeriesChart {
  /** To be put on the page. */
  readonly element = element('div');
  readonly #format: (value: number) => string;
  readonly #onSelect: (stretch: Stretch) => void;
  readonly #colors: readonly string[] | undefined;
  #stretch: Stretch | undefined;
  #labels: readonly string[] = [];
  #chart: TimeChart | undefined;

  /** `onSelect`: a stretch was dragged out with the mouse. `colors`: as of {@link TimeChart}. */
  constructor(
    format: (value: number) => string,
    onSelect: (stretch: Stretch) => void,
    colors: readonly string[] | undefined,
  ) {
    this.#format = format;
    this.#onSelect = onSelect;
    this.#colors = colors;
  }

  /** Draws no more than this stretch. Takes effect with the next `show` or `redraw`. */
  zoom(stretch: Stretch): void {
    this.#stretch = stretch;
    this.#chart?.zoom(stretch);
  }

  /** Draws again what was shown last. */
  redraw(): void {
    this.#chart?.redraw();
  }

  /** `pick` of each moment and label; null where there is none. */
  show<T extends { readonly timeNs: number }>(
    labels: readonly string[],
    moments: readonly T[],
    pick: (moment: T, label: string) => number | null,
  ): void {
    if (this.#chart === undefined || labels.join('\n') !== this.#labels.join('\n')) {
      this.#chart?.close();
      this.#labels = labels;
      const colors = this.#colors;
      const options = { labels, format: this.#format, onSelect: this.#onSelect };
      this.#chart = new TimeChart({ ...options, ...(colors !== undefined && { colors }) });
      this.#chart.zoom(this.#stretch);
      this.element.replaceChildren(this.#chart.element);
    }
    this.#chart.show(
      moments.map(({ timeNs }) => timeNs / 1e9),
      labels.map((label) => moments.map((moment) => pick(moment, label))),
    );
  }
}
