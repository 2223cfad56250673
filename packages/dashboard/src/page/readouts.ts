/** A row of large numbers. Tests read `data-value` and `data-sample`. */

import { element } from './dom.js';

type Readout<T> = readonly [
  label: string,
  value: (sample: T) => number,
  format: (value: number) => string,
  isBad?: (value: number) => boolean,
];

export class Readouts<T> {
  readonly element = element('dl', { class: 'readouts' });
  readonly #readouts: ReadonlyArray<Readout<T>>;
  readonly #cells: HTMLElement[] = [];

  constructor(readouts: ReadonlyArray<Readout<T>>) {
    this.#readouts = readouts;
    for (const [label] of readouts) {
      const cell = element('dd', { 'data-name': label });
      this.#cells.push(cell);
      this.element.append(element('div', {}, element('dt', {}, label), cell));
    }
  }

  show(sample: T, number: number): void {
    this.element.dataset['sample'] = String(number);
    for (const [i, [, value, format, isBad]] of this.#readouts.entries()) {
      const cell = this.#cells[i];
      const now = value(sample);
      cell.dataset['value'] = String(now);
      cell.textContent = format(now);
      cell.parentElement!.classList.toggle('bad', isBad?.(now) === true);
    }
  }

  clear(): void {
    delete this.element.dataset['sample'];
    for (const cell of this.#cells) {
      delete cell.dataset['value'];
      cell.textContent = '–';
      cell.parentElement!.classList.remove('bad');
    }
  }
}
