/**
 * Packets in slow motion: draws the two endpoints and the switch, and lets real packets run along the links, one after the other, a million
 * times slower than they went. What was lost falls off at the switch.
 */

import type { LabPacket } from '../messages/lab.js';
import { element, svgElement } from './dom.js';

const WIDTH = 960;
const HEIGHT = 190;
const MIDDLE = 95;
const X_A = 90;
const X_SWITCH = WIDTH / 2;
const X_B = WIDTH - 90;
const FLIGHT_MS = 2400;
/** Packets of the queue pairs run beside each other, within the height of a node. */
const LANE_GAP_MAX = 26;
const LANES_HEIGHT = 60;

interface Flying {
  readonly packet: LabPacket;
  readonly group: SVGGElement;
  startMs: number;
}

/** Plays one stretch of packets after the other. */
export class PacketPlayer {
  /** To be put on the page. */
  readonly element: HTMLElement;
  readonly #svg = svgElement('svg', {
    class: 'topology',
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    role: 'img',
    'aria-label': 'endpoint A, the switch and endpoint B, with packets on the links',
  });
  readonly #caption = element('output');
  readonly #speed = element('input', { type: 'range', min: 1, max: 20, value: 4, 'aria-label': 'packets a second' });
  readonly #rates = new Map<string, SVGTextElement>();
  readonly #lanes: number;
  readonly #laneGap: number;
  readonly #load: () => Promise<readonly LabPacket[]>;
  #waiting: LabPacket[] = [];
  #flying: Flying[] = [];
  #launchedMs = 0;
  #isLoading = false;
  #isPaused = matchMedia('(prefers-reduced-motion: reduce)').matches;
  #pausedMs = 0;

  /** `load` gives the next stretch of packets, when the last one has been shown; they are of this many queue pairs. */
  constructor(lanes: number, load: () => Promise<readonly LabPacket[]>) {
    this.#lanes = lanes;
    this.#laneGap = Math.min(LANE_GAP_MAX, LANES_HEIGHT / lanes);
    this.#load = load;
    this.#draw();
    const keys = [
      ['data', 'new data'],
      ['repeated', 'sent again'],
      ['ack', 'ACK, READ request'],
      ['nak', 'NAK'],
      ['dropped', 'lost at the switch'],
    ].map(([kind, text]) => element('span', {}, element('span', { class: `key ${kind}` }), text));
    const speed = element('label', {}, 'packets a second ', this.#speed);
    this.element = element('div', {}, this.#svg, element('div', { class: 'story' }, this.#caption, ...keys, speed));
    requestAnimationFrame((nowMs) => this.#frame(nowMs));
  }

  /** Packets stand still while it is true. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Packets stand still while it is true. */
  set isPaused(value: boolean) {
    this.#isPaused = value;
  }

  /** Drops what is being shown: the settings have changed. */
  restart(): void {
    for (const { group } of this.#flying) group.remove();
    this.#flying = [];
    this.#waiting = [];
  }

  /** The text under a link or node: `a`, `switch`, `b`. */
  label(place: 'a' | 'switch' | 'b', text: string): void {
    this.#rates.get(place)!.textContent = text;
  }

  #draw(): void {
    for (const [from, to] of [
      [X_A, X_SWITCH],
      [X_SWITCH, X_B],
    ]) {
      this.#svg.append(svgElement('line', { class: 'link', x1: from, x2: to, y1: MIDDLE, y2: MIDDLE }));
    }
    const nodes = [
      ['a', X_A, 'endpoint A'],
      ['switch', X_SWITCH, 'switch'],
      ['b', X_B, 'endpoint B'],
    ] as const;
    for (const [place, x, name] of nodes) {
      const rate = svgElement('text', { class: 'small', x, y: MIDDLE + 62 });
      this.#rates.set(place, rate);
      this.#svg.append(
        svgElement('rect', { class: 'node', x: x - 62, y: MIDDLE - 42, width: 124, height: 84, rx: 10 }),
        svgElement('text', { x, y: MIDDLE - 52 }, name),
        rate,
      );
    }
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
    const text = svgElement('text', { y: 4 }, kind === 'nak' ? `NAK ${relativePsn}` : String(relativePsn));
    const width = 14 + 8 * text.textContent!.length;
    const group = svgElement('g', { class: `packet ${kind}${isRepeated ? ' repeated' : ''}` });
    group.append(svgElement('rect', { x: -width / 2, y: -11, width, height: 22, rx: 5 }), text);
    this.#svg.append(group);
    this.#flying.push({ packet, group, startMs: nowMs });
    const direction = from === 'a' ? 'A → B' : 'B → A';
    const number = `PSN ${relativePsn} (0x${psn.toString(16).padStart(6, '0')})`;
    const fate = isDropped ? ': lost' : isRepeated ? ': sent again' : '';
    this.#caption.textContent = `${direction}, QP ${lane + 1}: ${operation}, ${number}${fate}`;
  }

  async #refill(): Promise<void> {
    this.#isLoading = true;
    try {
      this.#waiting = [...(await this.#load())];
    } catch {
      // The page says that the connection is gone; there will be another try.
      await new Promise((resolve) => setTimeout(resolve, 1000));
    } finally {
      this.#isLoading = false;
    }
  }

  /** Puts a packet where it is after this share of its way; false when it has arrived. */
  #move({ packet, group }: Flying, share: number): boolean {
    const isDropping = packet.isDropped && share > 0.5;
    if (share >= 1) {
      group.remove();
      return false;
    }
    if (isDropping) group.classList.add('dropped');
    const way = isDropping ? 0.5 : share;
    const x = packet.from === 'a' ? X_A + (X_B - X_A) * way : X_B + (X_A - X_B) * way;
    const fall = isDropping ? (share - 0.5) * 2 * (HEIGHT - MIDDLE) : 0;
    group.setAttribute(
      'transform',
      `translate(${x} ${MIDDLE + (packet.lane - (this.#lanes - 1) / 2) * this.#laneGap + fall})`,
    );
    if (isDropping) group.setAttribute('opacity', String(2 - 2 * share));
    return true;
  }
}
