/** Large numbers in groups. Tests read `data-value` and `data-sample`. */

import { element } from './dom.js';

export type Readout<T> = readonly [
  label: string,
  value: (sample: T) => number,
  format: (value: number) => string,
  isBad?: (value: number) => boolean,
];

/** Readouts by the heading of their group. A group without a heading has the key ''. */
export type ReadoutGroups<T> = Readonly<Record<string, ReadonlyArray<Readout<T>>>>;

export class Readouts<T> {
  readonly element = element('div', { class: 'readouts' });
  readonly #readouts: ReadonlyArray<{ readonly readout: Readout<T>; readonly cell: HTMLElement }>;

  constructor(groups: ReadoutGroups<T>) {
    this.#readouts = Object.entries(groups).flatMap(([heading, readouts]) => {
      const cells = readouts.map((readout) => ({ readout, cell: element('dd', { 'data-name': readout[0] }) }));
      const rows = cells.map(({ readout, cell }) => element('div', {}, element('dt', {}, readout[0]), cell));
      if (heading !== '') this.element.append(element('h3', {}, heading));
      this.element.append(element('dl', { class: heading === '' ? '' : 'totals' }, ...rows));
      return cells;
    });
  }

  show(sample: T, number: number): void {
    this.element.dataset['sample'] = String(number);
    for (const { readout, cell } of this.#readouts) {
      const [, value, format, isBad] = readout;
      const now = value(sample);
      cell.dataset['value'] = String(now);
      cell.textContent = format(now);
      cell.parentElement!.classList.toggle('bad', isBad?.(now) === true);
    }
  }

  clear(): void {
    delete this.element.dataset['sample'];
    for (const { cell } of this.#readouts) {
      delete cell.dataset['value'];
      cell.textContent = '–';
      cell.parentElement!.classList.remove('bad');
    }
  }
}
