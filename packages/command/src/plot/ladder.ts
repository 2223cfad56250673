/**
 * Packets as a ladder diagram: the ends are vertical lines, time runs downwards, and a lost packet ends in a cross.
 * Packets are in order of time but not to scale; labels stand outside the lines so that no packet crosses them.
 */

import { formatNs } from './format.js';
import type { LadderConnection, LadderPacket } from './ladder-packet.js';
import { filled, LADDER_TEXTS, type LadderTexts } from './ladder-texts.js';
import { escapeXml, tag } from './svg.js';

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
/** Mean width of a character, on the wide side, where text cannot be measured. */
const CHARACTER_PX = 7;

const SHORTER = [
  ['QP ', '#'],
  ['RDMA_', ''],
  ['_MIDDLE', ''],
  ['_RESPONSE', ''],
  ['PSN_SEQUENCE_ERROR', 'PSN'],
] as const;

interface Columns {
  readonly time: number;
  readonly a: number;
  readonly b: number;
  readonly width: number;
}

/** A packet, or a run of packets that are drawn as one band. */
interface Rung {
  readonly packets: readonly [LadderPacket, ...LadderPacket[]];
  sentY: number;
  arrivedY: number;
}

interface Pause {
  readonly y: number;
  readonly ns: number;
}

interface LadderOptions {
  readonly ends: LadderConnection['ends'];
  readonly width: number;
  readonly texts?: LadderTexts;
  /** Draw long runs of data packets as one band, except those that contain a packet of `opened`. */
  readonly isFolded?: boolean;
  readonly opened?: ReadonlySet<LadderPacket>;
  /** Of a text in pixels. */
  readonly widthOf?: (text: string) => number;
}

export interface LadderDrawing {
  /** The content of an `<svg class="ladder">`: an element `.rung` for each packet or band. */
  readonly markup: string;
  readonly height: number;
  /** By packet: the place of its rung. */
  readonly rungOf: readonly number[];
  /** By rung: where its packet leaves. */
  readonly sentY: readonly number[];
}

interface Moment {
  readonly ns: number;
  readonly rung: Rung;
  readonly isArrival: boolean;
}

export function drawLadder(packets: readonly LadderPacket[], options: LadderOptions): LadderDrawing {
  const { ends, width, texts = LADDER_TEXTS, widthOf = (text) => CHARACTER_PX * text.length } = options;
  const isNarrow = width < NARROW;
  const { rungs, pauses, height } = layOut(rungsOf(packets, options));
  const columns = columnsOf(rungs, { isNarrow, width, widthOf });
  const endY = isNarrow ? 32 : 16;
  const drawing = { columns, ends, texts, isNarrow };
  const markup = [
    tag('text', { class: 'end', x: 0, y: 16, 'text-anchor': 'start' }, escapeXml(ends.a)),
    tag('text', { class: 'end', x: width, y: endY, 'text-anchor': 'end' }, escapeXml(ends.b)),
    ...[columns.a, columns.b].map((x) => tag('line', { class: 'life', x1: x, x2: x, y1: endY + 6, y2: height })),
    ...pauses.map(({ y, ns }) =>
      tag(
        'text',
        { class: 'pause', x: columns.a - GAP, y: y - 10, 'text-anchor': 'end' },
        escapeXml(filled(texts.later, { time: formatNs(ns) })),
      ),
    ),
    ...rungs.map((rung) => rungOf(rung, drawing)),
  ];
  return {
    markup: markup.join(''),
    height,
    rungOf: rungs.flatMap((rung, place) => rung.packets.map(() => place)),
    sentY: rungs.map(({ sentY }) => sentY),
  };
}

function rungsOf(packets: readonly LadderPacket[], { isFolded = false, opened }: LadderOptions): Rung[] {
  const rungs: Rung[] = [];
  const add = (from: number, to: number) => {
    const [first, ...others] = packets.slice(from, to);
    rungs.push({ packets: [first, ...others], sentY: 0, arrivedY: 0 });
  };
  for (let at = 0; at < packets.length; ) {
    let end = at + 1;
    while (end < packets.length && follows(packets[end], packets[end - 1])) end++;
    const canFold = isFolded && end - at >= FOLD_MIN && opened?.has(packets[at + FOLD_EDGE]) !== true;
    for (let i = at; i < end; i++) {
      if (!canFold || i < at + FOLD_EDGE || i >= end - FOLD_EDGE) add(i, i + 1);
      else if (i === at + FOLD_EDGE) add(i, end - FOLD_EDGE);
    }
    at = end;
  }
  return rungs;
}

function columnsOf(
  rungs: readonly Rung[],
  { isNarrow, width, widthOf }: { isNarrow: boolean; width: number; widthOf: (text: string) => number },
): Columns {
  const widest = (texts: readonly string[]) => Math.ceil(Math.max(0, ...texts.map(widthOf)));
  const namesOf = (end: 'a' | 'b') =>
    widest(rungs.filter(({ packets: [{ from }] }) => from === end).map((rung) => labelOf(rung, isNarrow)));
  const time = widest(rungs.map(({ packets: [{ sentNs }] }) => formatNs(sentNs)));
  return { time, a: time + GAP + namesOf('a') + GAP, b: width - namesOf('b') - GAP, width };
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

function rungOf(rung: Rung, { columns, ends, texts, isNarrow }: Drawing): string {
  const { sentY, arrivedY, packets } = rung;
  const [packet] = packets;
  const { from, isLost, isRepeated, kind, sentNs } = packet;
  const isFold = packets.length > 1;
  const [x1, whole] = from === 'a' ? [columns.a, columns.b] : [columns.b, columns.a];
  const x2 = isLost ? (x1 + whole) / 2 : whole;
  const y2 = isLost && packet.arrivedNs === null ? sentY + SLOPE / 2 : arrivedY;
  const direction = Math.sign(whole - x1);
  const classes = ['rung', kind, isRepeated ? 'repeated' : '', isLost ? 'dropped' : '', isFold ? 'fold' : ''];
  const name = { class: 'name', x: x1 - GAP * direction, y: sentY + 4, 'text-anchor': from === 'a' ? 'end' : 'start' };
  return tag(
    'g',
    {
      class: classes.filter((one) => one !== '').join(' '),
      role: 'listitem',
      'data-number': packet.number ?? 'missing',
      'data-psn': packet.relativePsn ?? '',
      'aria-label': isFold ? labelOf(rung, false) : packetWords(packet, ends, texts),
    },
    tag('rect', { class: 'hit', x: 0, y: sentY - SENT_HEIGHT / 2, width: columns.width, height: SENT_HEIGHT }),
    tag('text', { class: 'time', x: columns.time, y: sentY + 4, 'text-anchor': 'end' }, formatNs(sentNs)),
    tag('text', name, escapeXml(labelOf(rung, isNarrow))),
    tag('line', { x1, y1: sentY, x2, y2 }),
    isLost ? cross(x2, y2) : head(x2, y2, direction),
  );
}

function labelOf({ packets }: Rung, isNarrow: boolean): string {
  const [{ operation, relativePsn }] = packets;
  const name = shortName(operation, isNarrow);
  if (packets.length === 1) return relativePsn === null ? name : `${name} ${relativePsn}`;
  const last = packets[packets.length - 1].relativePsn;
  return `${packets.length} × ${name}${relativePsn === null ? '' : ` ${relativePsn} to ${last}`}`;
}

function cross(x: number, y: number): string {
  return tag('path', {
    class: 'cross',
    d: `M${x - 6} ${y - 6}L${x + 6} ${y + 6}M${x - 6} ${y + 6}L${x + 6} ${y - 6}`,
  });
}

function head(x: number, y: number, direction: number): string {
  return tag('path', { class: 'head', d: `M${x} ${y}l${-9 * direction} -4v8z` });
}

function shortName(operation: string, isNarrow: boolean): string {
  const name = operation.replace(/\b(RC|UC|UD) /, '');
  if (!isNarrow) return name;
  return SHORTER.reduce((short, [long, replacement]) => short.replace(long, replacement), name);
}

/** About one packet. */
export function packetWords(packet: LadderPacket, ends: LadderConnection['ends'], texts: LadderTexts): string {
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

const LEGEND = ['data', 'repeated', 'request', 'ack', 'nak', 'cnp', 'dropped'] as const;

/** The colours of packets as markup. */
export function packetLegend(texts: LadderTexts = LADDER_TEXTS): string {
  return LEGEND.map((kind) => `<span><span class="key ${kind}"></span>${escapeXml(texts[kind])}</span>`).join('');
}

/** A ladder with its legend as markup of a page that does not change. */
export function ladderFigure(packets: readonly LadderPacket[], ends: LadderConnection['ends'], width: number): string {
  const { markup, height } = drawLadder(packets, { ends, width, isFolded: true });
  const box = { class: 'ladder', viewBox: `0 0 ${width} ${height}`, width, height, role: 'list' };
  return `<p class="story">${packetLegend()}</p>${tag('svg', { ...box, 'aria-label': LADDER_TEXTS.list }, markup)}`;
}
