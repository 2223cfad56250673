/** A row of large numbers. Each carries what it was made of in `data-value`, and the row the number of the sample in `data-sample`. */

import { element } from './dom.js';

interface Readout<T> {
  readonly label: string;
  readonly value: (sample: T) => number;
  readonly format: (value: number) => string;
  /** Shown in the colour of trouble. */
  readonly isBad?: (value: number) => boolean;
}

/** One number a readout. */
export class Readouts<T> {
  /** To be put on the page. */
  readonly element = element('dl', { class: 'readouts' });
  readonly #readouts: ReadonlyArray<Readout<T>>;
  readonly #cells: HTMLElement[] = [];

  constructor(readouts: ReadonlyArray<Readout<T>>) {
    this.#readouts = readouts;
    for (const { label } of readouts) {
      const cell = element('dd', { 'data-name': label });
      this.#cells.push(cell);
      this.element.append(element('div', {}, element('dt', {}, label), cell));
    }
  }

  /** Shows the values of this sample. */
  show(sample: T, number: number): void {
    this.element.dataset['sample'] = String(number);
    for (const [i, { value, format, isBad }] of this.#readouts.entries()) {
      const cell = this.#cells[i];
      const now = value(sample);
      cell.dataset['value'] = String(now);
      cell.textContent = format(now);
      cell.parentElement!.classList.toggle('bad', isBad?.(now) === true);
    }
  }

  /** There is no sample, and so no number. */
  clear(): void {
    delete this.element.dataset['sample'];
    for (const cell of this.#cells) {
      delete cell.dataset['value'];
      cell.textContent = '–';
      cell.parentElement!.classList.remove('bad');
    }
  }
}
