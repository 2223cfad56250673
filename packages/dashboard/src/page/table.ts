/** A small table that is written anew with every reading. */

import { element } from './dom.js';

/** Fixed columns, any rows. */
export class Table {
  readonly #body = element('tbody');
  /** To be put on the page. */
  readonly element: HTMLElement;

  constructor(label: string, columns: readonly string[]) {
    const head = element('tr', {}, ...columns.map((column) => element('th', { scope: 'col' }, column)));
    const table = element('table', { 'aria-label': label }, element('thead', {}, head), this.#body);
    this.element = element('div', { class: 'table' }, table);
  }

  /** Writes these rows in place of the last ones. */
  show(rows: ReadonlyArray<readonly string[]>): void {
    this.#body.replaceChildren(...rows.map((row) => element('tr', {}, ...row.map((cell) => element('td', {}, cell)))));
  }
}
