/**
 * Packets as a ladder diagram: the ends are vertical lines, time runs downwards, and a lost packet ends in a cross.
 * Packets are in order of time but not to scale; labels stand outside the lines so that no packet crosses them.
 */

import type { LadderConnection, LadderPacket } from '../messages/ladder-messages.js';
import { element, svgElement } from './dom.js';
import { formatNs } from './format.js';

export const RUNGS_MAX = 400;
const SENT_HEIGHT = 20;
const ARRIVED_HEIGHT = 7;
const SLOPE = 12;
const PAUSE_HEIGHT = 28;
const PAUSE_FACTOR = 20;
const TOP = 46;
const NARROW = 640;
const GAP = 10;

const SHORTER = [
  ['QP ', '#'],
  ['RDMA_', ''],
  ['_MIDDLE', ''],
  ['_RESPONSE', ''],
  ['PSN_SEQUENCE_ERROR', 'PSN'],
] as const;
const FONT_PX = 12;
const measuring = document.createElement('canvas').getContext('2d')!;

interface Columns {
  readonly time: number;
  readonly a: number;
  readonly b: number;
  readonly width: number;
}

interface Rung {
  readonly packet: LadderPacket;
  sentY: number;
  arrivedY: number;
}

interface Pause {
  readonly y: number;
  readonly ns: number;
}

interface Moment {
  readonly ns: number;
  readonly rung: Rung;
  readonly isArrival: boolean;
}

export class LadderView {
  readonly element: HTMLElement;
  readonly #svg = svgElement('svg', { class: 'ladder', role: 'list', 'aria-label': 'packets in the order of time' });
  readonly #detail = element('output', { class: 'ladder-detail' });
  readonly #scroll = element(
    'div',
    { class: 'ladder-scroll', tabindex: 0, 'aria-label': 'ladder of packets' },
    this.#svg,
  );
  #ends: LadderConnection['ends'];
  #packets: readonly LadderPacket[] = [];
  #groups: SVGGElement[] = [];
  #chosen: number | undefined;
  #width = 0;

  constructor(ends: LadderConnection['ends']) {
    this.#ends = ends;
    const keys = [
      ['data', 'new data'],
      ['repeated', 'sent again'],
      ['ack', 'ACK, READ request'],
      ['nak', 'NAK'],
      ['dropped', 'lost'],
    ].map(([kind, text]) => element('span', {}, element('span', { class: `key ${kind}` }), text));
    this.element = element('div', {}, element('div', { class: 'story' }, this.#detail, ...keys), this.#scroll);
    new ResizeObserver(() => this.#resize()).observe(this.#scroll);
  }

  show(packets: readonly LadderPacket[], ends: LadderConnection['ends'] = this.#ends): void {
    this.#packets = packets.slice(0, RUNGS_MAX);
    this.#ends = ends;
    this.#chosen = undefined;
    this.#scroll.scrollTop = 0;
    const left = packets.length - this.#packets.length;
    this.#detail.textContent =
      packets.length === 0
        ? 'No packets in this time.'
        : left > 0
          ? `The first ${RUNGS_MAX} of ${packets.length} packets in this time. Choose a packet to read about it.`
          : 'Choose a packet to read about it.';
    this.#draw();
  }

  get chosen(): number | undefined {
    return this.#chosen;
  }

  choose(index: number): void {
    const packet = this.#packets[index];
    if (packet === undefined) return;
    if (this.#chosen !== undefined) this.#groups[this.#chosen]?.classList.remove('chosen');
    this.#chosen = index;
    this.#groups[index].classList.add('chosen');
    this.#detail.textContent = wordsOf(packet, this.#ends);
    const rung = this.#groups[index].querySelector('line')!;
    this.#scroll.scrollTop = Number(rung.getAttribute('y1')) - this.#scroll.clientHeight / 2;
  }

  #resize(): void {
    const width = Math.floor(this.#scroll.clientWidth);
    if (width === 0 || width === this.#width) return;
    this.#width = width;
    this.#draw();
  }

  #draw(): void {
    if (this.#width === 0) return;
    const isNarrow = this.#width < NARROW;
    const { rungs, pauses, height } = layOut(this.#packets);
    const columns = this.#columns(isNarrow);
    const endY = isNarrow ? 32 : 16;
    this.#svg.setAttribute('viewBox', `0 0 ${this.#width} ${height}`);
    this.#svg.setAttribute('height', String(height));
    this.#groups = rungs.map((rung, i) => {
      const group = rungOf(rung, columns, this.#ends, isNarrow);
      group.addEventListener('click', () => this.choose(i));
      return group;
    });
    this.#svg.replaceChildren(
      svgElement('text', { class: 'end', x: 0, y: 16, 'text-anchor': 'start' }, this.#ends.a),
      svgElement('text', { class: 'end', x: this.#width, y: endY, 'text-anchor': 'end' }, this.#ends.b),
      ...[columns.a, columns.b].map((x) =>
        svgElement('line', { class: 'life', x1: x, x2: x, y1: endY + 6, y2: height }),
      ),
      ...pauses.map(({ y, ns }) =>
        svgElement(
          'text',
          { class: 'pause', x: columns.a - GAP, y: y - 10, 'text-anchor': 'end' },
          `${formatNs(ns)} later`,
        ),
      ),
      ...this.#groups,
    );
    if (this.#chosen !== undefined) this.#groups[this.#chosen]?.classList.add('chosen');
  }

  #columns(isNarrow: boolean): Columns {
    measuring.font = `${FONT_PX}px ${getComputedStyle(this.#svg).fontFamily}`;
    const widest = (texts: readonly string[]) =>
      Math.ceil(texts.reduce((width, text) => Math.max(width, measuring.measureText(text).width), 0));
    const namesOf = (end: 'a' | 'b') =>
      widest(this.#packets.filter(({ from }) => from === end).map((packet) => labelOf(packet, isNarrow)));
    const time = widest(this.#packets.map(({ sentNs }) => formatNs(sentNs)));
    return { time, a: time + GAP + namesOf('a') + GAP, b: this.#width - namesOf('b') - GAP, width: this.#width };
  }
}

function layOut(packets: readonly LadderPacket[]): { rungs: Rung[]; pauses: Pause[]; height: number } {
  const rungs: Rung[] = packets.map((packet) => ({ packet, sentY: 0, arrivedY: 0 }));
  const moments: Moment[] = rungs.flatMap((rung) => {
    const { sentNs, arrivedNs } = rung.packet;
    const sent = { ns: sentNs, rung, isArrival: false };
    return arrivedNs === null ? [sent] : [sent, { ns: arrivedNs, rung, isArrival: true }];
  });
  moments.sort((one, other) => one.ns - other.ns);
  const steps = moments.slice(1).map(({ ns }, i) => ns - moments[i].ns);
  const usual = steps.filter((step) => step > 0).sort((one, other) => one - other);
  const longNs = PAUSE_FACTOR * (usual[Math.floor(usual.length / 2)] ?? Number.POSITIVE_INFINITY);
  const pauses: Pause[] = [];
  let y = TOP;
  for (const [i, { rung, isArrival }] of moments.entries()) {
    if (i > 0 && steps[i - 1] > longNs) {
      y += PAUSE_HEIGHT;
      pauses.push({ y, ns: steps[i - 1] });
    }
    y += isArrival ? ARRIVED_HEIGHT : SENT_HEIGHT;
    if (isArrival) rung.arrivedY = y;
    else {
      rung.sentY = y;
      rung.arrivedY = y + SLOPE;
    }
  }
  return { rungs, pauses, height: y + 2 * SLOPE };
}

function rungOf(
  { packet, sentY, arrivedY }: Rung,
  columns: Columns,
  ends: LadderConnection['ends'],
  isNarrow: boolean,
): SVGGElement {
  const { from, isLost, isRepeated, kind, sentNs } = packet;
  const [x1, whole] = from === 'a' ? [columns.a, columns.b] : [columns.b, columns.a];
  const x2 = isLost ? (x1 + whole) / 2 : whole;
  const y2 = isLost && packet.arrivedNs === null ? sentY + SLOPE / 2 : arrivedY;
  const direction = Math.sign(whole - x1);
  const classes = ['rung', kind, isRepeated ? 'repeated' : '', isLost ? 'dropped' : ''].filter((name) => name !== '');
  const group = svgElement('g', {
    class: classes.join(' '),
    role: 'listitem',
    'data-number': packet.number ?? 'missing',
    'data-psn': packet.relativePsn ?? '',
    'aria-label': wordsOf(packet, ends),
  });
  const name = { class: 'name', x: x1 - GAP * direction, y: sentY + 4, 'text-anchor': from === 'a' ? 'end' : 'start' };
  group.append(
    svgElement('rect', { class: 'hit', x: 0, y: sentY - SENT_HEIGHT / 2, width: columns.width, height: SENT_HEIGHT }),
    svgElement('text', { class: 'time', x: columns.time, y: sentY + 4, 'text-anchor': 'end' }, formatNs(sentNs)),
    svgElement('text', name, labelOf(packet, isNarrow)),
    svgElement('line', { x1, y1: sentY, x2, y2 }),
    isLost ? cross(x2, y2) : head(x2, y2, direction),
  );
  return group;
}

function labelOf({ operation, relativePsn }: LadderPacket, isNarrow: boolean): string {
  return `${shortName(operation, isNarrow)}${relativePsn === null ? '' : ` ${relativePsn}`}`;
}

function cross(x: number, y: number): SVGPathElement {
  return svgElement('path', {
    class: 'cross',
    d: `M${x - 6} ${y - 6}L${x + 6} ${y + 6}M${x - 6} ${y + 6}L${x + 6} ${y - 6}`,
  });
}

function head(x: number, y: number, direction: number): SVGPathElement {
  return svgElement('path', { class: 'head', d: `M${x} ${y}l${-9 * direction} -4v8z` });
}

function shortName(operation: string, isNarrow: boolean): string {
  const name = operation.replace(/\b(RC|UC|UD) /, '');
  if (!isNarrow) return name;
  return SHORTER.reduce((short, [long, replacement]) => short.replace(long, replacement), name);
}

function wordsOf(packet: LadderPacket, ends: LadderConnection['ends']): string {
  const { number, from, operation, psn, relativePsn, sentNs, arrivedNs, notes } = packet;
  const way = from === 'a' ? `${ends.a} → ${ends.b}` : `${ends.b} → ${ends.a}`;
  const wire = `PSN 0x${psn.toString(16).padStart(6, '0')}`;
  const place = relativePsn === null ? '' : `, ${relativePsn} of the connection (${wire})`;
  const took = arrivedNs === null ? '' : `, there after ${formatNs(arrivedNs - sentNs)}`;
  const name = number === null ? operation : `Packet ${number}: ${operation}`;
  return `${name}${place}, ${way}, at ${formatNs(sentNs)}${took}. ${notes.join(' ')}`.trim();
}
