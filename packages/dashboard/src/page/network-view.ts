/**
 * Senders on the left, switches in the middle, receivers on the right. A queue's bar is relative to its own maximum.
 */

import { formatBytes, formatRate } from '@rocev2/command/plot';
import type { ScenarioResult } from '@rocev2/lab/internal';
import { svgElement } from './dom.js';

const WIDTH = 960;
const ROW = 40;
const TOP = 30;
const HOST_WIDTH = 56;
const BAR_WIDTH = 90;
const ROWS_MAX = 16;

export interface Moment {
  readonly timeNs: number;
  readonly queueBytes: ReadonlyMap<string, number>;
  readonly rateBps: readonly number[];
  /** By receiving host. */
  readonly receivedBps: ReadonlyMap<string, number>;
  readonly fullestBytes: number;
  readonly cnps: number;
  readonly pauseFrames: number;
}

interface Place {
  readonly x: number;
  readonly y: number;
}

interface QueueBar {
  readonly port: string;
  readonly maxBytes: number;
  readonly bar: SVGRectElement;
  readonly text: SVGTextElement;
}

export class NetworkView {
  readonly element: SVGSVGElement;
  readonly #positions = new Map<string, Place>();
  readonly #hostTexts: Array<{ readonly rate: (moment: Moment) => number; readonly text: SVGTextElement }> = [];
  readonly #bars: QueueBar[] = [];

  constructor({ flows, queues, series }: ScenarioResult) {
    const senders = [...new Set(flows.map(({ from }) => from))];
    const receivers = [...new Set(flows.map(({ to }) => to))].filter((host) => !senders.includes(host));
    const nodes = [...new Set(queues.flatMap(({ port }) => port.split('>')))];
    const hosts = new Set(flows.flatMap(({ from, to }) => [from, to]));
    const switches = nodes.filter((node) => !hosts.has(node));
    const columns: ReadonlyArray<readonly [readonly string[], number]> = [
      [senders.slice(0, ROWS_MAX), 150],
      [switches.slice(0, ROWS_MAX), WIDTH / 2],
      [receivers.slice(0, ROWS_MAX), WIDTH - 150],
    ];
    const rows = Math.max(...columns.map(([names]) => names.length), 2);
    const height = 2 * TOP + rows * ROW;
    for (const [names, x] of columns) {
      for (const [i, name] of names.entries())
        this.#positions.set(name, { x, y: TOP + ((i + 0.5) / names.length) * (height - 2 * TOP) });
    }
    this.element = svgElement('svg', {
      class: 'topology',
      viewBox: `0 0 ${WIDTH} ${height}`,
      role: 'img',
      'aria-label': 'hosts and switches, with the rates of flows and the fill of queues',
    });
    for (const { port } of queues) this.#drawLink(port);
    for (const [port, bytes] of Object.entries(series.queueBytes)) this.#drawQueue(port, Math.max(...bytes));
    for (const [name, place] of this.#positions) this.#drawNode(name, place, hosts.has(name));
    for (const host of hosts) this.#drawRate(host, flows);
  }

  show(moment: Moment): void {
    for (const { port, maxBytes, bar, text } of this.#bars) {
      const bytes = moment.queueBytes.get(port) ?? 0;
      bar.setAttribute('width', String((bytes / maxBytes) * BAR_WIDTH));
      text.textContent = bytes === 0 ? '' : formatBytes(bytes);
    }
    for (const { rate, text } of this.#hostTexts) text.textContent = formatRate(rate(moment));
  }

  #drawLink(port: string): void {
    const [from, to] = port.split('>').map((name) => this.#positions.get(name));
    if (from === undefined || to === undefined) return;
    this.element.append(svgElement('line', { class: 'wire', x1: from.x, y1: from.y, x2: to.x, y2: to.y }));
  }

  #drawQueue(port: string, maxBytes: number): void {
    const [from, to] = port.split('>').map((name) => this.#positions.get(name));
    if (from === undefined || to === undefined) return;
    const towardsRight = to.x >= from.x;
    const share = 0.42;
    const x = from.x + (to.x - from.x) * share - (towardsRight ? 0 : BAR_WIDTH);
    const y = from.y + (to.y - from.y) * share;
    const frame = svgElement('rect', { class: 'queue-frame', x, y: y - 8, width: BAR_WIDTH, height: 16 });
    const bar = svgElement('rect', { class: 'queue', x, y: y - 8, width: 0, height: 16 });
    const text = svgElement('text', { class: 'small', x: x + BAR_WIDTH / 2, y: y - 12 });
    this.element.append(frame, bar, text);
    this.#bars.push({ port, maxBytes, bar, text });
  }

  #drawNode(name: string, { x, y }: Place, isHost: boolean): void {
    const width = isHost ? HOST_WIDTH : HOST_WIDTH + 20;
    this.element.append(
      svgElement('rect', { class: 'node', x: x - width / 2, y: y - 13, width, height: 26, rx: isHost ? 13 : 4 }),
      svgElement('text', { x, y: y + 5 }, name),
    );
  }

  #drawRate(host: string, flows: ScenarioResult['flows']): void {
    const place = this.#positions.get(host);
    if (place === undefined) return;
    const isSender = place.x < WIDTH / 2;
    const sent = flows.filter(({ from }) => from === host);
    const rate = ({ rateBps, receivedBps }: Moment) =>
      isSender ? sent.reduce((sum, { id }) => sum + rateBps[id], 0) : (receivedBps.get(host) ?? 0);
    const x = isSender ? place.x - HOST_WIDTH / 2 - 45 : place.x + HOST_WIDTH / 2 + 45;
    const text = svgElement('text', { class: 'small', x, y: place.y + 5 });
    this.element.append(text);
    this.#hostTexts.push({ rate, text });
  }
}
