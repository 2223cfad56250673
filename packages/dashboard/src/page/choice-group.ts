/** One setting: a row of radio buttons that look like buttons. */

import { element } from './dom.js';

interface Choice<T extends string> {
  readonly value: T;
  readonly label: string;
}

/** Exactly one of the choices is chosen. */
export class ChoiceGroup<T extends string> {
  /** To be put on the page. */
  readonly element: HTMLFieldSetElement;
  readonly #inputs = new Map<T, HTMLInputElement>();

  /** `onChoose` is called for what a person chooses, not for what `show` shows. */
  constructor(name: string, legend: string, choices: ReadonlyArray<Choice<T>>, onChoose: (value: T) => void) {
    this.element = element('fieldset', {}, element('legend', {}, legend));
    for (const { value, label } of choices) {
      const input = element('input', { type: 'radio', name, value });
      input.addEventListener('change', () => onChoose(value));
      this.#inputs.set(value, input);
      this.element.append(element('label', { class: 'choice' }, input, element('span', {}, label)));
    }
  }

  /** Shows this choice, without calling anybody. */
  show(value: T): void {
    this.#inputs.get(value)!.checked = true;
  }
}
