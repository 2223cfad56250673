/**
 * Packets as a ladder diagram: the ends are vertical lines, time runs downwards, and a lost packet ends in a cross.
 * Packets are in order of time but not to scale; labels stand outside the lines so that no packet crosses them.
 */

import type { LadderConnection, LadderPacket } from '../messages/ladder-messages.js';
import { filled, LADDER_TEXTS, type LadderTexts } from '../messages/ladder-texts.js';
import { element, svgElement } from './dom.js';
import { formatNs } from './format.js';
import { packetLegend } from './packet-legend.js';

export const RUNGS_MAX = 400;
const SENT_HEIGHT = 20;
const ARRIVED_HEIGHT = 7;
const SLOPE = 12;
const PAUSE_HEIGHT = 28;
const PAUSE_FACTOR = 20;
const TOP = 46;
const NARROW = 640;
const GAP = 10;
/** Runs of at least this many packets can be folded. */
const FOLD_MIN = 8;
/** Packets of a run that stay before and after its fold. */
const FOLD_EDGE = 2;
const REVEAL_MARGIN = 40;

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

/** A packet, or a run of packets that are drawn as one band. */
interface Rung {
  readonly packets: readonly [LadderPacket, ...LadderPacket[]];
  /** Of the first packet, among those that are shown. */
  readonly index: number;
  sentY: number;
  arrivedY: number;
}

interface Pause {
  readonly y: number;
  readonly ns: number;
}

interface LadderOptions {
  /** Draw long runs of data packets as one band, which a click opens. */
  readonly isFolded?: boolean;
}

interface Moment {
  readonly ns: number;
  readonly rung: Rung;
  readonly isArrival: boolean;
}

export class LadderView {
  readonly element: HTMLElement;
  readonly #svg = svgElement('svg', { class: 'ladder', role: 'list' });
  readonly #detail = element('output', { class: 'ladder-detail' });
  readonly #head = element('div', { class: 'story' });
  readonly #scroll = element('div', { class: 'ladder-scroll', tabindex: 0 }, this.#svg);
  #texts: LadderTexts = LADDER_TEXTS;
  /** Of packets that were left out. */
  #count = 0;
  #ends: LadderConnection['ends'];
  #packets: readonly LadderPacket[] = [];
  /** By packet; the packets of a fold share one. */
  #groups: SVGGElement[] = [];
  #opened = new Set<LadderPacket>();
  readonly #isFolded: boolean;
  #chosen: number | undefined;
  #width = 0;

  constructor(ends: LadderConnection['ends'], { isFolded = false }: LadderOptions = {}) {
    this.#ends = ends;
    this.#isFolded = isFolded;
    this.element = element('div', {}, this.#head, this.#scroll);
    this.translate(LADDER_TEXTS);
    new ResizeObserver(() => this.#resize()).observe(this.#scroll);
  }

  translate(texts: LadderTexts): void {
    this.#texts = texts;
    this.#head.replaceChildren(this.#detail, ...packetLegend(texts));
    this.#svg.setAttribute('aria-label', texts.list);
    this.#scroll.setAttribute('aria-label', texts.ladder);
    this.#tell();
    this.#draw();
  }

  show(packets: readonly LadderPacket[], ends: LadderConnection['ends'] = this.#ends): void {
    this.#packets = packets.slice(0, RUNGS_MAX);
    this.#ends = ends;
    this.#chosen = undefined;
    this.#opened = new Set();
    this.#count = packets.length;
    this.#tell();
    this.#draw();
    this.#reveal();
  }

  /** About the chosen packet, or about all. */
  #tell(): void {
    const { none, first, choose } = this.#texts;
    const packet = this.#chosen === undefined ? undefined : this.#packets[this.#chosen];
    const shown = this.#packets.length;
    const isCut = this.#count > shown;
    const about = isCut ? [filled(first, { shown: String(shown), count: String(this.#count) }), choose] : [choose];
    this.#detail.textContent =
      packet !== undefined ? wordsOf(packet, this.#ends, this.#texts) : shown === 0 ? none : about.join(' ');
  }

  get chosen(): number | undefined {
    return this.#chosen;
  }

  choose(index: number): void {
    const packet = this.#packets[index];
    if (packet === undefined) return;
    if (this.#groups[index].classList.contains('fold')) this.#open(index);
    if (this.#chosen !== undefined) this.#groups[this.#chosen]?.classList.remove('chosen');
    this.#chosen = index;
    this.#groups[index].classList.add('chosen');
    this.#tell();
    this.#scroll.scrollTop = this.#yOf(index) - this.#scroll.clientHeight / 2;
  }

  #open(index: number): void {
    const group = this.#groups[index];
    for (const [i, packet] of this.#packets.entries()) if (this.#groups[i] === group) this.#opened.add(packet);
    this.#draw();
  }

  #yOf(index: number): number {
    return Number(this.#groups[index].querySelector('line')!.getAttribute('y1'));
  }

  /** Scrolls so far that the first loss and the NAK that answers it can be seen, if there is room for both. */
  #reveal(): void {
    this.#scroll.scrollTop = 0;
    if (this.#groups.length === 0) return;
    const loss = this.#packets.findIndex(({ isLost }) => isLost);
    const nak = this.#packets.findIndex(({ kind }, i) => kind === 'nak' && i > loss);
    if (nak < 0) return;
    const wanted = this.#yOf(nak) + REVEAL_MARGIN - this.#scroll.clientHeight;
    const most = loss < 0 ? wanted : this.#yOf(loss) - REVEAL_MARGIN;
    this.#scroll.scrollTop = Math.max(0, Math.min(wanted, most));
  }

  #rungs(): Rung[] {
    const rungs: Rung[] = [];
    const add = (from: number, to: number) => {
      const [first, ...others] = this.#packets.slice(from, to);
      rungs.push({ packets: [first, ...others], index: from, sentY: 0, arrivedY: 0 });
    };
    for (let at = 0; at < this.#packets.length; ) {
      let end = at + 1;
      while (end < this.#packets.length && follows(this.#packets[end], this.#packets[end - 1])) end++;
      const canFold = this.#isFolded && end - at >= FOLD_MIN && !this.#opened.has(this.#packets[at + FOLD_EDGE]);
      for (let i = at; i < end; i++) {
        if (!canFold || i < at + FOLD_EDGE || i >= end - FOLD_EDGE) add(i, i + 1);
        else if (i === at + FOLD_EDGE) add(i, end - FOLD_EDGE);
      }
      at = end;
    }
    return rungs;
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
    const { rungs, pauses, height } = layOut(this.#rungs());
    const columns = this.#columns(rungs, isNarrow);
    const endY = isNarrow ? 32 : 16;
    this.#svg.setAttribute('viewBox', `0 0 ${this.#width} ${height}`);
    this.#svg.setAttribute('height', String(height));
    const groups = rungs.map((rung) => {
      const group = rungOf(rung, { columns, ends: this.#ends, texts: this.#texts, isNarrow });
      group.addEventListener('click', () => this.choose(rung.index));
      return group;
    });
    this.#groups = rungs.flatMap(({ packets }, i) => packets.map(() => groups[i]));
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
          filled(this.#texts.later, { time: formatNs(ns) }),
        ),
      ),
      ...groups,
    );
    if (this.#chosen !== undefined) this.#groups[this.#chosen]?.classList.add('chosen');
  }

  #columns(rungs: readonly Rung[], isNarrow: boolean): Columns {
    measuring.font = `${FONT_PX}px ${getComputedStyle(this.#svg).fontFamily}`;
    const widest = (texts: readonly string[]) =>
      Math.ceil(texts.reduce((width, text) => Math.max(width, measuring.measureText(text).width), 0));
    const namesOf = (end: 'a' | 'b') =>
      widest(rungs.filter(({ packets: [{ from }] }) => from === end).map((rung) => labelOf(rung, isNarrow)));
    const time = widest(rungs.map(({ packets: [{ sentNs }] }) => formatNs(sentNs)));
    return { time, a: time + GAP + namesOf('a') + GAP, b: this.#width - namesOf('b') - GAP, width: this.#width };
  }
}

/** Whether a packet continues the run of data that the one before belongs to. */
function follows(packet: LadderPacket, before: LadderPacket): boolean {
  return (
    packet.kind === 'data' &&
    !packet.isLost &&
    !before.isLost &&
    packet.from === before.from &&
    packet.operation === before.operation &&
    packet.isRepeated === before.isRepeated &&
    packet.relativePsn === (before.relativePsn ?? Number.NaN) + 1
  );
}

function layOut(rungs: readonly Rung[]): { rungs: readonly Rung[]; pauses: Pause[]; height: number } {
  const moments: Moment[] = rungs.flatMap((rung) => {
    const [{ sentNs }] = rung.packets;
    const { arrivedNs } = rung.packets[rung.packets.length - 1];
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

interface Drawing {
  readonly columns: Columns;
  readonly ends: LadderConnection['ends'];
  readonly texts: LadderTexts;
  readonly isNarrow: boolean;
}

function rungOf(rung: Rung, { columns, ends, texts, isNarrow }: Drawing): SVGGElement {
  const { sentY, arrivedY, packets } = rung;
  const [packet] = packets;
  const { from, isLost, isRepeated, kind, sentNs } = packet;
  const isFold = packets.length > 1;
  const [x1, whole] = from === 'a' ? [columns.a, columns.b] : [columns.b, columns.a];
  const x2 = isLost ? (x1 + whole) / 2 : whole;
  const y2 = isLost && packet.arrivedNs === null ? sentY + SLOPE / 2 : arrivedY;
  const direction = Math.sign(whole - x1);
  const classes = ['rung', kind, isRepeated ? 'repeated' : '', isLost ? 'dropped' : '', isFold ? 'fold' : ''];
  const group = svgElement('g', {
    class: classes.filter((name) => name !== '').join(' '),
    role: 'listitem',
    'data-number': packet.number ?? 'missing',
    'data-psn': packet.relativePsn ?? '',
    'aria-label': isFold ? labelOf(rung, false) : wordsOf(packet, ends, texts),
  });
  const name = { class: 'name', x: x1 - GAP * direction, y: sentY + 4, 'text-anchor': from === 'a' ? 'end' : 'start' };
  group.append(
    svgElement('rect', { class: 'hit', x: 0, y: sentY - SENT_HEIGHT / 2, width: columns.width, height: SENT_HEIGHT }),
    svgElement('text', { class: 'time', x: columns.time, y: sentY + 4, 'text-anchor': 'end' }, formatNs(sentNs)),
    svgElement('text', name, labelOf(rung, isNarrow)),
    svgElement('line', { x1, y1: sentY, x2, y2 }),
    isLost ? cross(x2, y2) : head(x2, y2, direction),
  );
  return group;
}

function labelOf({ packets }: Rung, isNarrow: boolean): string {
  const [{ operation, relativePsn }] = packets;
  const name = shortName(operation, isNarrow);
  if (packets.length === 1) return relativePsn === null ? name : `${name} ${relativePsn}`;
  const last = packets[packets.length - 1].relativePsn;
  return `${packets.length} × ${name}${relativePsn === null ? '' : ` ${relativePsn} to ${last}`}`;
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

function wordsOf(packet: LadderPacket, ends: LadderConnection['ends'], texts: LadderTexts): string {
  const { number, from, operation, psn, relativePsn, sentNs, arrivedNs, notes } = packet;
  const way = from === 'a' ? `${ends.a} → ${ends.b}` : `${ends.b} → ${ends.a}`;
  const wire = `0x${psn.toString(16).padStart(6, '0')}`;
  const parts = [
    number === null ? operation : filled(texts.packet, { number: String(number), operation }),
    ...(relativePsn === null ? [] : [filled(texts.place, { place: String(relativePsn), psn: wire })]),
    filled(texts.at, { way, time: formatNs(sentNs) }),
    ...(arrivedNs === null ? [] : [filled(texts.took, { time: formatNs(arrivedNs - sentNs) })]),
  ];
  return `${parts.join(', ')}. ${notes.join(' ')}`.trim();
}
