import { formatCount, formatNs, type LadderConnection, type LadderPacket } from '@rocev2/command/plot';
import type { CaptureState } from '../messages/ladder-messages.js';
import { byId, element, panel } from './dom.js';
import type { KeyAction } from './keyboard.js';
import { LadderView } from './ladder-view.js';
import { Readouts } from './readouts.js';
import { TimeRange } from './time-range.js';

const BINS = 200;
const MARKS_MAX = 300;
const FIRST_PACKETS = 120;

const isTrouble = ({ isLost, kind, isRepeated }: LadderPacket) => isLost || kind === 'nak' || isRepeated;

const readoutsOfConnection = () =>
  new Readouts<LadderConnection>({
    '': [
      ['packets', ({ packets }) => packets.filter(({ number }) => number !== null).length, formatCount],
      ['lost', ({ packets }) => packets.filter(({ isLost }) => isLost).length, formatCount],
      ['NAKs', ({ packets }) => packets.filter(({ kind }) => kind === 'nak').length, formatCount],
      ['retransmitted', ({ packets }) => packets.filter(({ isRepeated }) => isRepeated).length, formatCount],
      ['time', ({ packets }) => packets[packets.length - 1].sentNs - packets[0].sentNs, formatNs],
    ],
  });

export class CaptureView {
  readonly #state: CaptureState;
  readonly #choice = element('select', { 'aria-label': 'connection' });
  readonly #readouts = readoutsOfConnection();
  readonly #range = new TimeRange({ label: 'time', format: formatNs, onChange: () => this.#drawLadder() });
  readonly #ladder = new LadderView({ a: '', b: '' });
  #shown: readonly LadderPacket[] = [];

  constructor(state: CaptureState) {
    this.#state = state;
    for (const [i, { name }] of state.connections.entries()) {
      this.#choice.append(element('option', { value: i }, `${i + 1}: ${name}`));
    }
  }

  readonly keys: readonly KeyAction[] = [
    { key: 'ArrowDown', name: 'down', does: 'the next packet', run: () => this.#step(1, () => true) },
    { key: 'ArrowUp', name: 'up', does: 'the packet before', run: () => this.#step(-1, () => true) },
    { key: 'n', name: 'n', does: 'the next loss, NAK or retransmission', run: () => this.#step(1, isTrouble) },
    { key: 'p', name: 'p', does: 'the one before', run: () => this.#step(-1, isTrouble) },
  ];

  start(view: HTMLElement): void {
    const { file, format, remarks, connections } = this.#state;
    byId('title').textContent = file;
    byId('status').textContent = format === 'trace' ? 'a trace of one endpoint' : 'a capture of a link';
    byId('pause').hidden = true;
    const next = element('button', { type: 'button' }, 'Next trouble (n)');
    next.addEventListener('click', () => this.#step(1, isTrouble));
    const before = element('button', { type: 'button' }, 'The one before (p)');
    before.addEventListener('click', () => this.#step(-1, isTrouble));
    const controls = element('div', { class: 'controls' }, this.#choice, next, before);
    const notes = remarks.map((remark) => element('p', { class: 'muted' }, remark));
    const top = panel('Connection', 'wide', controls, this.#readouts.element, ...notes);
    view.append(
      top,
      panel('Time: drag the window, pull its edges', 'wide', this.#range.element),
      panel('Packets', 'wide', this.#ladder.element),
    );
    const troubles = connections.map(({ packets }) => packets.filter(isTrouble).length);
    this.#choice.value = String(troubles.indexOf(Math.max(...troubles)));
    this.#choice.addEventListener('change', () => this.#showConnection());
    this.#showConnection();
  }

  get #connection(): LadderConnection {
    return this.#state.connections[Number(this.#choice.value)];
  }

  #showConnection(): void {
    const { packets } = this.#connection;
    this.#readouts.show(this.#connection, Number(this.#choice.value));
    const [firstNs, lastNs] = [packets[0].sentNs, packets[packets.length - 1].sentNs];
    const width = Math.max(1, (lastNs - firstNs) / BINS);
    const counts = new Array<number>(BINS + 1).fill(0);
    for (const { sentNs } of packets) counts[Math.min(BINS, Math.floor((sentNs - firstNs) / width))]++;
    const marks = packets.filter(isTrouble).slice(0, MARKS_MAX);
    this.#range.show(
      counts.map((_, i) => firstNs + i * width),
      counts,
      marks.map(({ sentNs, operation }) => ({ x: sentNs, text: operation })),
    );
    const to = packets[Math.min(FIRST_PACKETS, packets.length) - 1].sentNs;
    if (packets.length > FIRST_PACKETS) this.#range.select({ from: firstNs, to });
    else this.#range.follow();
  }

  #drawLadder(): void {
    const { from, to } = this.#range.stretch;
    const { packets, ends } = this.#connection;
    this.#shown = packets.filter(({ sentNs }) => sentNs >= from - 1 && sentNs <= to + 1);
    this.#ladder.show(this.#shown, ends);
  }

  #step(by: 1 | -1, wanted: (packet: LadderPacket) => boolean): void {
    const { packets } = this.#connection;
    const { chosen } = this.#ladder;
    const first = by === 1 ? -1 : this.#shown.length;
    let at = packets.indexOf(this.#shown[0]) + (chosen ?? first) + by;
    while (packets[at] !== undefined && !wanted(packets[at])) at += by;
    const packet = packets[at];
    if (packet === undefined) return;
    if (!this.#shown.includes(packet)) {
      const { from, to } = this.#range.stretch;
      const span = to - from;
      this.#range.select({ from: packet.sentNs - span / 4, to: packet.sentNs + (3 * span) / 4 });
    }
    this.#ladder.choose(this.#shown.indexOf(packet));
  }
}
