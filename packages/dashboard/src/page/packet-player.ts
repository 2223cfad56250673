/** Draws the two endpoints and the switch, and replays packets a few per second. */

import type { LabPacket } from '../messages/lab-messages.js';
import { element, svgElement } from './dom.js';
import { packetLegend } from './packet-legend.js';

const HEIGHT = 190;
const MIDDLE = 85;
const NARROW = 640;
const NODE = { wide: 62, narrow: 38 } as const;
const NODE_MARGIN = { wide: 90, narrow: 48 } as const;
const LINE_HEIGHT = 18;
const FLIGHT_MS = 2400;
const ROW_GAP_MAX = 26;
const ROWS_HEIGHT = 60;
const RETRY_MS = 250;

const NODES = ['a', 'switch', 'b'] as const;
type Place = (typeof NODES)[number];

interface Flying {
  readonly packet: LabPacket;
  readonly group: SVGGElement;
  startMs: number;
}

function wordOn({ kind, relativePsn }: LabPacket): string {
  if (relativePsn === null) return kind.toUpperCase();
  return kind === 'nak' ? `NAK ${relativePsn}` : String(relativePsn);
}

export class PacketPlayer {
  readonly element: HTMLElement;
  readonly #svg = svgElement('svg', {
    class: 'topology',
    height: HEIGHT,
    role: 'img',
    'aria-label': 'endpoint A, the switch and endpoint B, with packets on the links',
  });
  readonly #caption = element('output');
  readonly #speed = element('input', { type: 'range', min: 1, max: 20, value: 4, 'aria-label': 'packets per second' });
  readonly #nodes = svgElement('g');
  readonly #rates = new Map<string, { readonly text: SVGTextElement; lines: readonly string[] }>();
  #width = 960;
  readonly #rows: number;
  readonly #rowGap: number;
  readonly #load: () => Promise<readonly LabPacket[]>;
  #waiting: LabPacket[] = [];
  #flying: Flying[] = [];
  #launchedMs = 0;
  #isLoading = false;
  #generation = 0;
  #isPaused = matchMedia('(prefers-reduced-motion: reduce)').matches;
  #pausedMs = 0;

  constructor(rows: number, load: () => Promise<readonly LabPacket[]>) {
    this.#rows = rows;
    this.#rowGap = Math.min(ROW_GAP_MAX, ROWS_HEIGHT / rows);
    this.#load = load;
    for (const place of NODES) this.#rates.set(place, { text: svgElement('text', { class: 'small' }), lines: [] });
    this.#svg.append(this.#nodes);
    this.#draw();
    new ResizeObserver(() => this.#resize()).observe(this.#svg);
    const speed = element('label', {}, 'packets per second ', this.#speed);
    const story = element('div', { class: 'story' }, this.#caption, ...packetLegend(), speed);
    this.element = element('div', {}, this.#svg, story);
    requestAnimationFrame((nowMs) => this.#frame(nowMs));
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  set isPaused(value: boolean) {
    this.#isPaused = value;
  }

  /** Discards packets that wait or are being loaded. They precede the change of settings. */
  restart(): void {
    this.#generation++;
    this.#isLoading = false;
    for (const { group } of this.#flying) group.remove();
    this.#flying = [];
    this.#waiting = [];
  }

  label(place: Place, lines: readonly string[]): void {
    const rate = this.#rates.get(place)!;
    rate.lines = lines;
    this.#write(rate);
  }

  get #isNarrow(): boolean {
    return this.#width < NARROW;
  }

  #resize(): void {
    const width = Math.floor(this.#svg.clientWidth);
    if (width === 0 || width === this.#width) return;
    this.#width = width;
    this.#draw();
  }

  #xOf(place: Place): number {
    const margin = this.#isNarrow ? NODE_MARGIN.narrow : NODE_MARGIN.wide;
    return { a: margin, switch: this.#width / 2, b: this.#width - margin }[place];
  }

  #draw(): void {
    this.#svg.setAttribute('viewBox', `0 0 ${this.#width} ${HEIGHT}`);
    const half = this.#isNarrow ? NODE.narrow : NODE.wide;
    const names: Readonly<Record<Place, string>> = this.#isNarrow
      ? { a: 'A', switch: 'switch', b: 'B' }
      : { a: 'endpoint A', switch: 'switch', b: 'endpoint B' };
    const link = { class: 'link', x1: this.#xOf('a'), x2: this.#xOf('b'), y1: MIDDLE, y2: MIDDLE };
    this.#nodes.replaceChildren(svgElement('line', link));
    for (const place of NODES) {
      const x = this.#xOf(place);
      const rate = this.#rates.get(place)!;
      rate.text.setAttribute('x', String(x));
      rate.text.setAttribute('y', String(MIDDLE + 62));
      this.#write(rate);
      this.#nodes.append(
        svgElement('rect', { class: 'node', x: x - half, y: MIDDLE - 42, width: 2 * half, height: 84, rx: 10 }),
        svgElement('text', { x, y: MIDDLE - 52 }, names[place]),
        rate.text,
      );
    }
  }

  #write({ text, lines }: { readonly text: SVGTextElement; readonly lines: readonly string[] }): void {
    const shown = this.#isNarrow ? lines.flatMap((line) => line.split(/ (?=packets?)/)) : [lines.join(' ')];
    const x = text.getAttribute('x') ?? 0;
    text.replaceChildren(...shown.map((line, i) => svgElement('tspan', { x, dy: i === 0 ? 0 : LINE_HEIGHT }, line)));
  }

  #frame(nowMs: number): void {
    requestAnimationFrame((nextMs) => this.#frame(nextMs));
    if (this.#isPaused) {
      this.#pausedMs ||= nowMs;
      return;
    }
    if (this.#pausedMs > 0) {
      for (const flying of this.#flying) flying.startMs += nowMs - this.#pausedMs;
      this.#pausedMs = 0;
    }
    if (nowMs - this.#launchedMs >= 1000 / Number(this.#speed.value)) this.#launch(nowMs);
    this.#flying = this.#flying.filter((flying) => this.#move(flying, (nowMs - flying.startMs) / FLIGHT_MS));
  }

  #launch(nowMs: number): void {
    const packet = this.#waiting.shift();
    if (packet === undefined) {
      if (!this.#isLoading && this.#flying.length === 0) void this.#refill();
      return;
    }
    this.#launchedMs = nowMs;
    const { kind, psn, relativePsn, lane, isDropped, isRepeated, from, operation } = packet;
    const text = svgElement('text', { y: 4 }, wordOn(packet));
    const width = 14 + 8 * text.textContent!.length;
    const group = svgElement('g', { class: `packet ${kind}${isRepeated ? ' repeated' : ''}` });
    group.append(svgElement('rect', { x: -width / 2, y: -11, width, height: 22, rx: 5 }), text);
    this.#svg.append(group);
    this.#flying.push({ packet, group, startMs: nowMs });
    const direction = from === 'a' ? 'A → B' : 'B → A';
    const wire = `PSN 0x${psn.toString(16).padStart(6, '0')}`;
    const number = relativePsn === null ? wire : `packet ${relativePsn} of the connection (${wire})`;
    const fate = isDropped ? ': lost' : isRepeated ? ': retransmitted' : '';
    this.#caption.textContent = `${direction}, QP ${lane + 1}: ${operation}, ${number}${fate}`;
  }

  async #refill(): Promise<void> {
    const generation = this.#generation;
    this.#isLoading = true;
    const packets = await this.#load().catch(() => []);
    // Too few packets, or no answer: it is asked again later, not in each frame.
    if (packets.length === 0) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    if (generation !== this.#generation) return;
    this.#waiting = [...packets];
    this.#isLoading = false;
  }

  #move({ packet, group }: Flying, share: number): boolean {
    const isDropping = packet.isDropped && share > 0.5;
    if (share >= 1) {
      group.remove();
      return false;
    }
    if (isDropping) group.classList.add('dropped');
    const way = isDropping ? 0.5 : share;
    const [start, end] = packet.from === 'a' ? [this.#xOf('a'), this.#xOf('b')] : [this.#xOf('b'), this.#xOf('a')];
    const x = start + (end - start) * way;
    const fall = isDropping ? (share - 0.5) * 2 * (HEIGHT - MIDDLE) : 0;
    group.setAttribute(
      'transform',
      `translate(${x} ${MIDDLE + (packet.lane - (this.#rows - 1) / 2) * this.#rowGap + fall})`,
    );
    if (isDropping) group.setAttribute('opacity', String(2 - 2 * share));
    return true;
  }
}
