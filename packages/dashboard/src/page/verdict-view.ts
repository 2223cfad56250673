import type { VerdictText } from '@rocev2/command/plot';
import { element } from './dom.js';

/** A sentence that rates what is shown. Screen readers announce changes of the title only. */
export class VerdictView {
  readonly #title = element('strong', { role: 'status' });
  readonly #text = element('span');
  readonly element = element('p', { class: 'verdict' }, this.#title, ' ', this.#text);

  show({ tone, title, text }: VerdictText): void {
    this.element.className = `verdict ${tone}`;
    if (this.#title.textContent !== title) this.#title.textContent = title;
    this.#text.textContent = text;
  }
}
