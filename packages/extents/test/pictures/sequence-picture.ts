/** A sequence diagram of messages between hosts. Time runs downwards; pauses are cut short, and say how long they are. */

import { CHART_WIDTH, escapeXml, svgDocument } from '../../../command/src/plot/svg.js';
import type { Message } from './calls-in-capture.js';

/** What one picture shows. */
export interface Picture {
  readonly title: string;
  readonly subtitle: string;
  /** From left to right. */
  readonly hosts: readonly string[];
  readonly messages: readonly Message[];
  /** Things that no packet says. */
  readonly notes: ReadonlyArray<{ readonly timeNs: number; readonly host: number; readonly text: string }>;
  /** What an arrow is labelled with. */
  readonly label: (message: Message) => string;
}

const LEFT = 24;
const TIME_WIDTH = 76;
const TOP = 84;
const LANES_TOP = TOP + 14;
/** Pixels between two moments: by their distance, within limits. */
const PX_PER_US = 1.2;
const STEP_MIN = 13;
const STEP_MAX = 42;
/** Longer pauses are named. */
const PAUSE_NS = 1e6;
const PAUSE_PX = 40;
const HEAD = 7;
/** Width of a letter, about. */
const GLYPH_PX = 6.5;

const HUE = { call: 0, answer: 2, refusal: 6, read: 9, data: 1 } as const;
const LEGEND: ReadonlyArray<readonly [Message['kind'], string]> = [
  ['call', 'call'],
  ['answer', 'answer'],
  ['refusal', 'refusal'],
  ['read', 'RDMA READ'],
  ['data', 'its data'],
];

/** The text of an SVG file. */
export function drawSequence({ title, subtitle, hosts, messages, notes, label }: Picture): string {
  const laneOf = (host: number) =>
    LEFT + TIME_WIDTH + ((host + 0.5) * (CHART_WIDTH - LEFT - TIME_WIDTH)) / hosts.length;
  const times = [
    ...messages.flatMap(({ sentNs, arrivedNs }) => (arrivedNs === undefined ? [sentNs] : [sentNs, arrivedNs])),
    ...notes.map(({ timeNs }) => timeNs),
  ];
  const { places, pauses } = placed(times);
  const y = (timeNs: number) => LANES_TOP + 16 + places.get(timeNs)!;
  const bottom = LANES_TOP + 40 + Math.max(...places.values());
  const startNs = Math.min(...times);
  const body = [
    ...hosts.map(
      (host, k) => `<text x="${laneOf(k)}" y="${TOP}" text-anchor="middle" font-weight="600">${host}</text>`,
    ),
    ...hosts.map((_, k) => line(laneOf(k), LANES_TOP, laneOf(k), bottom, 'class="grid"')),
    ...timeLabels(times, startNs, y),
    ...pauses.map(({ afterNs, ns }) => {
      const at = y(afterNs) + PAUSE_PX / 2;
      const across = line(LEFT + TIME_WIDTH, at, CHART_WIDTH - LEFT, at, 'class="axis" stroke-dasharray="1 5"');
      return `${across}\n<text class="muted" x="${LEFT}" y="${at + 4}">${(ns / 1e6).toFixed(0)} ms</text>`;
    }),
    ...notes.map(({ timeNs, host, text }) => noteOf(laneOf(host), y(timeNs), text)),
    ...messages.map((message) => {
      const from = { x: laneOf(message.from), y: y(message.sentNs) };
      const to = laneOf(message.to);
      const end = message.arrivedNs === undefined ? undefined : y(message.arrivedNs);
      return arrow(message.kind, from, { x: to, y: end }, label(message));
    }),
    ...legend(bottom + 24, messages),
  ];
  return svgDocument({ title, subtitle, left: LEFT, height: bottom + 44, body });
}

function placed(times: readonly number[]) {
  const moments = [...new Set(times)].sort((one, other) => one - other);
  const places = new Map<number, number>();
  const pauses: { afterNs: number; ns: number }[] = [];
  let at = 0;
  for (const [k, moment] of moments.entries()) {
    const ns = k === 0 ? 0 : moment - moments[k - 1];
    if (ns > PAUSE_NS) {
      pauses.push({ afterNs: moments[k - 1], ns });
      at += PAUSE_PX;
    } else if (k > 0) at += Math.min(STEP_MAX, Math.max(STEP_MIN, (ns / 1000) * PX_PER_US));
    places.set(moment, at);
  }
  return { places, pauses };
}

/** As many as there is room for. */
function timeLabels(times: readonly number[], startNs: number, y: (timeNs: number) => number): string[] {
  const labels: string[] = [];
  let last = Number.NEGATIVE_INFINITY;
  for (const timeNs of [...times].sort((one, other) => one - other)) {
    if (y(timeNs) - last < 15) continue;
    last = y(timeNs);
    const us = (timeNs - startNs) / 1000;
    const text = us < 1000 ? `${us.toFixed(0)} µs` : `${(us / 1000).toFixed(2)} ms`;
    labels.push(
      `<text class="muted" x="${LEFT + TIME_WIDTH - 12}" y="${round(last + 4)}" text-anchor="end">${text}</text>`,
    );
  }
  return labels;
}

function noteOf(x: number, y: number, text: string): string {
  const anchor = x > CHART_WIDTH * 0.75 ? 'end' : 'start';
  const side = anchor === 'end' ? -10 : 10;
  return [
    `<circle class="fill6" cx="${round(x)}" cy="${round(y)}" r="5"/>`,
    `<text x="${round(x + side)}" y="${round(y + 4)}" text-anchor="${anchor}">${escapeXml(text)}</text>`,
  ].join('\n');
}

function arrow(
  kind: Message['kind'],
  from: { readonly x: number; readonly y: number },
  to: { readonly x: number; readonly y: number | undefined },
  text: string,
): string {
  const hue = HUE[kind];
  const isLost = to.y === undefined;
  const way = Math.sign(to.x - from.x);
  // What is lost ends short of its lane.
  const end = isLost ? { x: to.x - way * 36, y: from.y + 10 } : { x: to.x, y: to.y! };
  const dashes = { call: '', answer: '', refusal: '', read: ' stroke-dasharray="4 4"', data: '' }[kind];
  const width = kind === 'data' ? 3 : 1.6;
  const length = Math.hypot(end.x - from.x, end.y - from.y);
  const [dx, dy] = [(end.x - from.x) / length, (end.y - from.y) / length];
  const shaft = { x: end.x - dx * HEAD, y: end.y - dy * HEAD };
  const corner = (side: number) => `${round(shaft.x - side * dy * 4.5)},${round(shaft.y + side * dx * 4.5)}`;
  const head = isLost
    ? `<path class="hue6" d="M${end.x - 5} ${end.y - 5}l10 10m0-10l-10 10" stroke-width="2" fill="none"/>`
    : `<polygon class="fill${hue}" points="${round(end.x)},${round(end.y)} ${corner(1)} ${corner(-1)}"/>`;
  // Beside the lane where it arrives, where no other arrow of the same sender passes.
  const labelX = end.x - way * (HEAD + 5);
  const labelY = end.y - Math.abs(dy / dx) * (HEAD + 5 + text.length * GLYPH_PX) - 3; // Above the line, which comes from above.
  const anchor = way > 0 ? 'end' : 'start';
  return [
    line(
      from.x,
      from.y,
      isLost ? end.x : shaft.x,
      isLost ? end.y : shaft.y,
      `class="hue${hue}" stroke-width="${width}"${dashes}`,
    ),
    head,
    ...(text === ''
      ? []
      : [`<text x="${round(labelX)}" y="${round(labelY)}" text-anchor="${anchor}">${escapeXml(text)}</text>`]),
  ].join('\n');
}

function legend(y: number, messages: readonly Message[]): string[] {
  let x = LEFT;
  return LEGEND.filter(([kind]) => messages.some((message) => message.kind === kind)).flatMap(([kind, text]) => {
    const at = x;
    x += 54 + text.length * 7.5;
    return [
      line(
        at,
        y,
        at + 24,
        y,
        `class="hue${HUE[kind]}" stroke-width="${kind === 'data' ? 3 : 1.6}"${kind === 'read' ? ' stroke-dasharray="4 4"' : ''}`,
      ),
      `<text x="${at + 30}" y="${y + 4}">${text}</text>`,
    ];
  });
}

function line(x1: number, y1: number, x2: number, y2: number, attributes: string): string {
  return `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" ${attributes}/>`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
