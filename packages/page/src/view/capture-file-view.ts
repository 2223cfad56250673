/** A scene that reads a capture: the verdicts of the audit, a ladder of one connection, and all packets. */

import { toneOfShare } from '@rocev2/command/plot';
import { element, LadderView, Table, VerdictView } from '@rocev2/dashboard/parts';
import type { CaptureReport, FileScene, TextKey } from '../scenes/index.js';
import { ladderTextsIn, ruleTitleIn, sentenceIn, textIn } from '../scenes/index.js';
import type { EngineWorker } from './engine-worker.js';
import type { PageState } from './location-state.js';
import type { FileReply } from './messages.js';

const RUNGS = 200;
const ROWS = 50;
/** Findings of one rule that are shown. */
const FINDINGS_SHOWN = 5;
const RULE_COLUMNS = ['rule', 'level', 'verdict', 'passed', 'violations', 'cannotTell', 'title'] as const;
const CELLS = ['number', 'time', 'source', 'destination', 'operation', 'qpn', 'psn', 'flags', 'bytes', 'icrc'] as const;
const PACKET_COLUMNS = [...CELLS, 'details'] as const;

type Finding = CaptureReport['audit']['findings'][number];

/** Pages through a list. */
class Pager {
  readonly element = element('div', { class: 'steps' });
  readonly #back = element('button', { type: 'button' }, '◀');
  readonly #forward = element('button', { type: 'button' }, '▶');
  readonly #shown = element('output');
  readonly #size: number;
  #from = 0;
  #count = 0;

  constructor(size: number, onMove: () => void) {
    this.#size = size;
    this.element.append(this.#back, this.#shown, this.#forward);
    for (const [button, by] of [[this.#back, -size] as const, [this.#forward, size] as const]) {
      button.addEventListener('click', () => {
        this.#from += by;
        onMove();
      });
    }
  }

  /** From where a list of this many is shown. */
  get from(): number {
    return this.#from;
  }

  /** Shows the page of an element of the list. */
  goTo(index: number): void {
    this.#from = Math.floor(index / this.#size) * this.#size;
  }

  show(count: number, text: (key: TextKey, numbers?: Readonly<Record<string, string>>) => string): void {
    this.#count = count;
    const to = Math.min(this.#count, this.#from + this.#size);
    this.#back.disabled = this.#from === 0;
    this.#forward.disabled = to === this.#count;
    this.#back.setAttribute('aria-label', text('capture.earlier'));
    this.#forward.setAttribute('aria-label', text('capture.later'));
    const numbers = { from: String(Math.min(count, this.#from + 1)), to: String(to), count: String(count) };
    this.#shown.textContent = text('capture.shown', numbers);
  }
}

export class CaptureFileView {
  readonly element: HTMLElement;
  readonly #idea = element('p', { class: 'idea' });
  readonly #chooseText = element('span');
  readonly #file = element('input', { type: 'file' });
  readonly #example = element('button', { type: 'button' });
  readonly #verdict = new VerdictView();
  readonly #progress = element('progress', { max: 1, value: 0, class: 'is-over' });
  readonly #remarks = element('div');
  readonly #rules = element('div', { class: 'capture-rules' });
  readonly #connection = element('select');
  readonly #ladder = new LadderView({ a: '', b: '' }, { isFolded: true });
  readonly #rungs = new Pager(RUNGS, () => this.#drawLadder());
  readonly #table = element('div', { class: 'capture-table' });
  readonly #rows = new Pager(ROWS, () => this.#drawTable());
  readonly #headings: ReadonlyArray<readonly [HTMLElement, TextKey]>;
  readonly #results: readonly HTMLElement[];
  readonly #engine: EngineWorker;
  #state: PageState<FileScene> | undefined;
  #report: CaptureReport | undefined;
  #failure: string | undefined;
  #source: File | 'example' | undefined;

  constructor(engine: EngineWorker) {
    this.#engine = engine;
    const [rules, ladder, table] = Array.from({ length: 3 }, () => element('h2'));
    this.#headings = [
      [rules, 'capture.rules'],
      [ladder, 'capture.ladder'],
      [table, 'capture.table'],
    ];
    const choice = element('label', { class: 'drop' }, this.#chooseText, this.#file);
    const source = element('div', { class: 'story' }, choice, this.#example);
    const connection = element('div', { class: 'story' }, this.#connection, this.#rungs.element);
    this.#results = [
      element('section', { class: 'panel' }, rules, this.#rules),
      element('section', { class: 'panel' }, ladder, connection, this.#ladder.element),
      element('section', { class: 'panel' }, table, this.#rows.element, this.#table),
    ];
    const head = [this.#idea, source, this.#verdict.element, this.#progress, this.#remarks];
    this.element = element(
      'div',
      { class: 'scene' },
      element('section', { class: 'panel head' }, ...head),
      ...this.#results,
    );
    this.#file.addEventListener('change', () => this.#open(this.#file.files?.[0]));
    this.#example.addEventListener('click', () => this.#open('example'));
    this.#connection.addEventListener('change', () => {
      this.#rungs.goTo(0);
      this.#drawLadder();
    });
    this.element.addEventListener('dragover', (event) => event.preventDefault());
    this.element.addEventListener('drop', (event) => {
      event.preventDefault();
      this.#open(event.dataTransfer?.files[0]);
    });
  }

  show(state: PageState<FileScene>): void {
    this.#state = state;
    this.#idea.textContent = this.#text(`${state.scene.name}.idea` as TextKey);
    this.#chooseText.textContent = this.#text('capture.choose');
    this.#file.accept = state.scene.accepts.join(',');
    this.#example.textContent = this.#text('capture.example');
    this.#connection.setAttribute('aria-label', this.#text('capture.connection'));
    this.#progress.setAttribute('aria-label', this.#text('results'));
    for (const [heading, key] of this.#headings) heading.textContent = this.#text(key);
    this.#ladder.translate(ladderTextsIn(state.language));
    this.#draw();
  }

  #text(key: TextKey, numbers?: Readonly<Record<string, string>>): string {
    return textIn(this.#state?.language ?? 'en', key, numbers);
  }

  #sentence(sentence: string): string {
    return sentenceIn(this.#state!.language, sentence);
  }

  #titleOf(rule: { readonly rule: number; readonly title: string }): string {
    return ruleTitleIn(this.#state!.language, rule);
  }

  get #sourceName(): string {
    return this.#source instanceof File ? this.#source.name : this.#text('capture.exampleName');
  }

  #open(source: File | 'example' | undefined): void {
    if (source === undefined) return;
    this.#source = source;
    this.#report = undefined;
    this.#failure = undefined;
    const { seed } = this.#state!;
    const file = source === 'example' ? undefined : source;
    this.#engine.read({ seed, file }, (reply) => this.#take(reply));
    this.#draw();
  }

  #take(reply: FileReply): void {
    if (reply.kind === 'reading') {
      this.#progress.value = reply.done;
      const share = Math.round(reply.done * 100).toString();
      this.#progress.title = this.#text('capture.reading', { name: this.#sourceName, share });
      return;
    }
    if (reply.kind === 'failed') this.#failure = reply.message;
    else this.#useReport(reply.report);
    this.#draw();
  }

  #useReport(report: CaptureReport): void {
    this.#report = report;
    this.#connection.replaceChildren(
      ...report.connections.map(({ name }, i) => element('option', { value: i }, `${i + 1}: ${name}`)),
    );
    const troubles = report.connections.map(
      ({ packets }) => packets.filter(({ isLost, isRepeated, kind }) => isLost || isRepeated || kind === 'nak').length,
    );
    this.#connection.value = String(troubles.indexOf(Math.max(...troubles)));
    this.#rungs.goTo(0);
    this.#rows.goTo(0);
  }

  #draw(): void {
    const { scene } = this.#state!;
    const isReading = this.#source !== undefined && this.#report === undefined && this.#failure === undefined;
    this.#progress.classList.toggle('is-over', !isReading);
    if (isReading) this.#progress.value = 0;
    const isOver = this.#report !== undefined || this.#failure !== undefined;
    this.element.dataset['state'] = isReading ? 'running' : isOver ? 'complete' : 'idle';
    for (const section of this.#results) section.hidden = this.#report === undefined;
    const remarks =
      this.#report === undefined ? [] : [this.#sourceName, ...this.#report.remarks.map((one) => this.#sentence(one))];
    this.#remarks.replaceChildren(...remarks.map((remark) => element('p', { class: 'muted' }, remark)));
    if (this.#failure !== undefined) {
      this.#verdict.show({ tone: 'bad', title: this.#text('capture.failed'), text: this.#sentence(this.#failure) });
    } else if (this.#report === undefined) {
      const key = isReading ? 'capture.reading' : 'capture.waiting';
      const title = this.#text(key, { name: this.#sourceName, share: '0' });
      this.#verdict.show({ tone: 'idle', title, text: isReading ? '' : this.#text('capture.waiting.text') });
    } else {
      const { usefulShare, title, text, numbers: found } = scene.explain(this.#report);
      const numbers = { ...found, why: this.#sentence(found['why']) };
      const tone = toneOfShare(usefulShare);
      this.#verdict.show({ tone, title: this.#text(title, numbers), text: this.#text(text, numbers) });
      this.#drawRules(this.#report);
      this.#drawLadder();
      this.#drawTable();
    }
  }

  #drawRules({ rules, audit }: CaptureReport): void {
    const labels = RULE_COLUMNS.map((column) => this.#text(`capture.${column}`));
    const table = new Table(this.#text('capture.rules'), labels);
    const verdicts = {
      violation: this.#text('capture.violations'),
      'cannot tell': this.#text('capture.cannotTell'),
      pass: this.#text('capture.passed'),
      'not seen': '',
    } as const;
    table.show(
      rules.map(({ rule, severity, verdict, passed, violations, cannotTell, title }) => [
        String(rule),
        this.#text(`capture.${severity}`),
        element('span', { class: `verdict-${verdict.replace(' ', '-')}` }, verdicts[verdict]),
        ...[passed, violations, cannotTell].map(String),
        this.#titleOf({ rule, title }),
      ]),
    );
    const found = rules
      .filter(({ verdict }) => verdict === 'violation')
      .map(({ rule, title, violations }) => {
        const findings = audit.findings.filter((one) => one.rule === rule && one.verdict === 'violation');
        const shown = findings.slice(0, FINDINGS_SHOWN).map((finding) => this.#findingItem(finding));
        const left = violations - shown.length;
        const more = left > 0 ? [element('li', {}, this.#text('capture.more', { count: String(left) }))] : [];
        return element(
          'div',
          {},
          element('h3', {}, `${rule}: ${this.#titleOf({ rule, title })}`),
          element('ul', {}, ...shown, ...more),
        );
      });
    const heading = found.length === 0 ? [] : [element('h3', {}, this.#text('capture.findings'))];
    this.#rules.replaceChildren(...heading, ...found, table.element);
  }

  #findingItem({ packets, flow, text }: Finding): HTMLElement {
    const numbers = [...new Set(packets)].map((number) => {
      const button = element('button', { type: 'button', class: 'packet-number' }, String(number));
      button.addEventListener('click', () => this.#goTo(number));
      return button;
    });
    return element('li', {}, ...numbers, ' ', element('span', {}, `${flow}: ${this.#sentence(text)}`));
  }

  /** Shows a packet of the file in the ladder and in the table. */
  #goTo(number: number): void {
    const { connections, packets } = this.#report!;
    const has = connections.findIndex((one) => one.packets.some((packet) => packet.number === number));
    if (has >= 0) {
      this.#connection.value = String(has);
      const index = connections[has].packets.findIndex((packet) => packet.number === number);
      this.#rungs.goTo(index);
      this.#drawLadder();
      this.#ladder.choose(index - this.#rungs.from);
    }
    const row = packets.findIndex((cells) => cells.number === String(number));
    if (row >= 0) this.#rows.goTo(row);
    this.#drawTable(number);
    this.#ladder.element.scrollIntoView({ block: 'center' });
  }

  #drawLadder(): void {
    const connection = this.#report?.connections[Number(this.#connection.value)];
    const { from } = this.#rungs;
    this.#rungs.show(connection?.packets.length ?? 0, (key, numbers) => this.#text(key, numbers));
    const packets = connection?.packets.slice(from, from + RUNGS).map((packet) => ({
      ...packet,
      operation: this.#sentence(packet.operation),
      notes: packet.notes.map((note) => this.#sentence(note)),
    }));
    this.#ladder.show(packets ?? [], connection?.ends);
  }

  #drawTable(chosen?: number): void {
    const { packets } = this.#report!;
    const { from } = this.#rows;
    this.#rows.show(packets.length, (key, numbers) => this.#text(key, numbers));
    const labels = PACKET_COLUMNS.map((column) => this.#text(`capture.${column}`));
    const table = new Table(this.#text('capture.table'), labels);
    const mark = (cell: string) => element('mark', {}, cell);
    table.show(
      packets.slice(from, from + ROWS).map((cells) => {
        const isChosen = cells.number === String(chosen);
        return PACKET_COLUMNS.map((column) => (isChosen && column === 'number' ? mark(cells[column]) : cells[column]));
      }),
    );
    this.#table.replaceChildren(table.element);
  }
}
