/** A chart over time whose series come and go: it is drawn anew when their names change. */

import { element } from './dom.js';
import { TimeChart } from './time-chart.js';

/** One chart at a time, made for the names shown last. */
export class SeriesChart {
  /** To be put on the page. */
  readonly element = element('div');
  readonly #format: (value: number) => string;
  #labels: readonly string[] = [];
  #chart: TimeChart | undefined;

  constructor(format: (value: number) => string) {
    this.#format = format;
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
      this.#chart = new TimeChart({ labels, format: this.#format });
      this.element.replaceChildren(this.#chart.element);
    }
    this.#chart.show(
      moments.map(({ timeNs }) => timeNs / 1e9),
      labels.map((label) => moments.map((moment) => pick(moment, label))),
    );
  }
}
