import { element } from './dom.js';
import { type Stretch, TimeChart } from './time-chart.js';

export class SeriesChart {
  readonly element = element('div');
  readonly #format: (value: number) => string;
  readonly #onSelect: (stretch: Stretch) => void;
  readonly #colors: readonly string[] | undefined;
  #stretch: Stretch | undefined;
  #labels: readonly string[] = [];
  #chart: TimeChart | undefined;

  constructor(
    format: (value: number) => string,
    onSelect: (stretch: Stretch) => void,
    colors: readonly string[] | undefined,
  ) {
    this.#format = format;
    this.#onSelect = onSelect;
    this.#colors = colors;
  }

  zoom(stretch: Stretch): void {
    this.#stretch = stretch;
    this.#chart?.zoom(stretch);
  }

  redraw(): void {
    this.#chart?.redraw();
  }

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
