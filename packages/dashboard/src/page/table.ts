import { element } from './dom.js';

export class Table {
  readonly #body = element('tbody');
  readonly element: HTMLElement;

  constructor(label: string, columns: readonly string[]) {
    const head = element('tr', {}, ...columns.map((column) => element('th', { scope: 'col' }, column)));
    const table = element('table', { 'aria-label': label }, element('thead', {}, head), this.#body);
    this.element = element('div', { class: 'table' }, table);
  }

  show(rows: ReadonlyArray<ReadonlyArray<string | Node>>): void {
    this.#body.replaceChildren(...rows.map((row) => element('tr', {}, ...row.map((cell) => element('td', {}, cell)))));
  }
}
