import { element } from './dom.js';

interface Choice<T extends string> {
  readonly value: T;
  readonly label: string;
}

export class ChoiceGroup<T extends string> {
  readonly element: HTMLFieldSetElement;
  readonly #inputs = new Map<T, HTMLInputElement>();

  constructor(name: string, legend: string, choices: ReadonlyArray<Choice<T>>, onChoose: (value: T) => void) {
    this.element = element('fieldset', {}, element('legend', {}, legend));
    for (const { value, label } of choices) {
      const input = element('input', { type: 'radio', name, value });
      input.addEventListener('change', () => onChoose(value));
      this.#inputs.set(value, input);
      this.element.append(element('label', { class: 'choice' }, input, element('span', {}, label)));
    }
  }

  show(value: T): void {
    this.#inputs.get(value)!.checked = true;
  }
}
