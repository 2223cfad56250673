import { element } from '@rocev2/dashboard/parts';
import { CODE_MAX, type Parameter, type TextKey, type Values } from '../scenes/index.js';

type Translate = (key: TextKey) => string;

interface Labels {
  /** Of the control. */
  readonly name: string;
  readonly nameOf: (value: string) => string;
}

export class Controls {
  readonly element = element('form', { class: 'settings' });
  readonly #onChange: (values: Values) => void;

  readonly #onRun: (values: Values) => void;

  /** `onRun` is called with code that the user wants to run. */
  constructor(onChange: (values: Values) => void, onRun: (values: Values) => void) {
    this.#onChange = onChange;
    this.#onRun = onRun;
    this.element.addEventListener('submit', (event) => event.preventDefault());
  }

  show(
    scene: string,
    parameters: readonly Parameter[],
    values: Values,
    text: Translate,
    nameOf: Labels['nameOf'],
  ): void {
    const labels = parameters.map((parameter) => {
      const key = `${scene}.${parameter.name}` as TextKey;
      const change = (value: string) => this.#onChange({ ...values, [parameter.name]: value });
      const hint = element('small', {}, text(`${key}.hint` as TextKey));
      const run = (value: string) => this.#onRun({ ...values, [parameter.name]: value });
      const input =
        parameter.kind === 'code'
          ? codeInput(
              parameter,
              { code: values[parameter.name], example: parameter.example!(values), label: text(key) },
              text,
              run,
            )
          : INPUTS[parameter.kind](parameter, values[parameter.name], { name: text(key), nameOf }, change);
      return element('fieldset', {}, element('legend', {}, text(key)), ...input, hint);
    });
    this.element.replaceChildren(...labels);
  }
}

type MakeInput = (
  parameter: Parameter,
  value: string,
  labels: Labels,
  change: (value: string) => void,
) => HTMLElement[];

const slider: MakeInput = ({ name, values }, value, labels, change) => {
  const place = values.indexOf(value);
  const attributes = { type: 'range', min: 0, max: values.length - 1, value: place, 'aria-label': labels.name };
  const input = element('input', { ...attributes, 'data-name': name, 'aria-valuetext': value });
  const shown = element('output', {}, value);
  input.addEventListener('input', () => {
    shown.textContent = values[input.valueAsNumber];
    input.setAttribute('aria-valuetext', values[input.valueAsNumber]);
  });
  input.addEventListener('change', () => change(values[input.valueAsNumber]));
  return [input, shown];
};

function options(
  type: 'radio' | 'checkbox',
  { name, values }: Parameter,
  chosen: readonly string[],
  { nameOf }: Labels,
) {
  return values.map((value) => {
    const input = element('input', { type, name, value });
    input.checked = chosen.includes(value);
    return { input, label: element('label', {}, input, nameOf(value)) };
  });
}

const choice: MakeInput = (parameter, value, labels, change) => {
  const made = options('radio', parameter, [value], labels);
  for (const { input } of made) input.addEventListener('change', () => change(input.value));
  return made.map(({ label }) => label);
};

const set: MakeInput = (parameter, value, labels, change) => {
  const made = options('checkbox', parameter, value.split(','), labels);
  for (const { input } of made) {
    input.addEventListener('change', () => {
      const chosen = made.filter((one) => one.input.checked).map((one) => one.input.value);
      if (chosen.length > 0) change(chosen.join(','));
      else input.checked = true;
    });
  }
  return made.map(({ label }) => label);
};

const INPUTS: Readonly<Record<Exclude<Parameter['kind'], 'code'>, MakeInput>> = { slider, choice, set };

/** The code of the example has the value ''. */
function codeInput(
  { name }: Parameter,
  { code, example, label }: { readonly code: string; readonly example: string; readonly label: string },
  text: Translate,
  run: (code: string) => void,
): HTMLElement[] {
  const attributes = { rows: 24, spellcheck: 'false', maxlength: CODE_MAX, 'aria-label': label, 'data-name': name };
  const area = element('textarea', { class: 'code', ...attributes });
  area.value = code === '' ? example : code;
  const button = element('button', { type: 'button', id: 'run' }, text('run'));
  button.addEventListener('click', () => run(area.value === example ? '' : area.value));
  return [area, button];
}
