import { element } from './dom.js';

interface Choice<T extends string> {
  readonly value: T;
  readonly label: string;
  /** What it does, in a few words. */
  readonly summary: string;
}

/** Radio buttons with a legend, which also explains the chosen one. */
export class ChoiceGroup<T extends string> {
  readonly element: HTMLFieldSetElement;
  readonly #inputs = new Map<T, { readonly input: HTMLInputElement; readonly summary: string }>();
  readonly #summary = element('span', { class: 'summary' });

  constructor(name: string, legend: string, choices: ReadonlyArray<Choice<T>>, onChoose: (value: T) => void) {
    this.element = element('fieldset', {}, element('legend', {}, legend, this.#summary));
    for (const { value, label, summary } of choices) {
      const input = element('input', { type: 'radio', name, value });
      input.addEventListener('change', () => onChoose(value));
      this.#inputs.set(value, { input, summary });
      this.element.append(element('label', { class: 'choice', title: summary }, input, element('span', {}, label)));
    }
  }

  show(value: T): void {
    const { input, summary } = this.#inputs.get(value)!;
    input.checked = true;
    this.#summary.textContent = `: ${summary}`;
  }
}
