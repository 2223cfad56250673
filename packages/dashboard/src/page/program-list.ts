import { formatByteRate, formatRate } from '@rocev2/command/plot';
import type { AttachedProgram } from '../messages/attached.js';
import { element } from './dom.js';

const THROUGHPUT: Readonly<Record<AttachedProgram['kind'], (inBps: number, outBps: number) => string>> = {
  endpoint: (inBps, outBps) => `receives ${formatRate(inBps)}, sends ${formatRate(outBps)}`,
  switch: (inBps, outBps) => `takes ${formatRate(inBps)}, sends ${formatRate(outBps)}`,
  disk: (inBps, outBps) => `is written ${formatByteRate(inBps)}, is read ${formatByteRate(outBps)}`,
  cluster: (inBps, outBps) => `stores ${formatByteRate(inBps)}, frees ${formatByteRate(outBps)}`,
};

const HOW_TO_START = `rocev2 bw write --estats                 # an endpoint; the other in another terminal:
rocev2 bw write 127.0.0.1 -D 3600s --estats
rocev2 switch --port a=127.0.0.1:5001 --port b=127.0.0.1:5002 --estats
rocev2 disk serve --backend memory --size 1GiB --estats
rocev2 extents up --dir /tmp/cluster --estats
openDevice({ address, estats: true })    // in a program of yours`;

export class ProgramList {
  readonly #list = element('ul', { class: 'programs', role: 'listbox', tabindex: 0, 'aria-label': 'programs' });
  readonly #empty = element(
    'div',
    {},
    element(
      'p',
      {},
      'Nothing that can be watched is running here, or not what was named. It appears as soon as it does, for instance',
    ),
    element('pre', {}, HOW_TO_START),
  );
  readonly element = element('div', {}, this.#list, this.#empty);
  readonly #onChoose: (id: string) => void;

  constructor(onChoose: (id: string) => void) {
    this.#onChoose = onChoose;
  }

  show(programs: readonly AttachedProgram[], chosen: string | undefined): void {
    this.#empty.hidden = programs.length > 0;
    this.#list.hidden = programs.length === 0;
    const lines = new Map([...this.#list.children].map((line) => [(line as HTMLElement).dataset['id'], line]));
    const wanted = programs.map((program) => {
      const line = (lines.get(program.id) as HTMLElement | undefined) ?? this.#newLine(program.id);
      fillLine(line, program, program.id === chosen);
      return line;
    });
    // Lines that stay are not touched: a click takes two events on one element.
    if (wanted.some((line, i) => this.#list.children[i] !== line) || wanted.length !== this.#list.children.length) {
      this.#list.replaceChildren(...wanted);
    }
    if (chosen !== undefined) this.#list.setAttribute('aria-activedescendant', `program-${chosen}`);
  }

  #newLine(id: string): HTMLElement {
    const line = element('li', { role: 'option', id: `program-${id}`, 'data-id': id });
    line.addEventListener('click', () => this.#onChoose(id));
    return line;
  }
}

function fillLine(line: HTMLElement, program: AttachedProgram, isChosen: boolean): void {
  const { kind, pid, address, health, samples } = program;
  const sample = samples.at(-1);
  line.setAttribute('aria-selected', String(isChosen));
  line.classList.toggle('bad', !health.isGood);
  const throughput = sample === undefined ? '' : THROUGHPUT[kind](sample.inBps, sample.outBps);
  const cells = { kind, place: `${pid} on ${address}`, throughput, health: health.text };
  line.replaceChildren(
    ...Object.entries(cells).map(([name, text]) => element('span', { class: `cell ${name}` }, text)),
  );
}
