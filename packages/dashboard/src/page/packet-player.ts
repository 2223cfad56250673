/** Replays packets, a few per second. */

import { packetLegend } from '@rocev2/command/plot';
import { element } from './dom.js';
import { PacketStage, type StageNode, type StagePacket } from './packet-stage.js';

const FLIGHT_MS = 2400;
const RETRY_MS = 250;
const TEXTS = {
  image: 'endpoint A, the switch and endpoint B, with packets on the links',
  names: { a: 'endpoint A', switch: 'switch', b: 'endpoint B' },
  shortNames: { a: 'A', switch: 'switch', b: 'B' },
} as const;

interface Flying {
  readonly packet: StagePacket;
  startMs: number;
}

export class PacketPlayer {
  readonly element: HTMLElement;
  readonly #stage: PacketStage;
  readonly #caption = element('output');
  readonly #speed = element('input', { type: 'range', min: 1, max: 20, value: 4, 'aria-label': 'packets per second' });
  readonly #load: () => Promise<readonly StagePacket[]>;
  #waiting: StagePacket[] = [];
  #flying: Flying[] = [];
  #launchedMs = 0;
  #isLoading = false;
  #generation = 0;
  #isPaused = matchMedia('(prefers-reduced-motion: reduce)').matches;
  #pausedMs = 0;

  constructor(rows: number, load: () => Promise<readonly StagePacket[]>) {
    this.#load = load;
    this.#stage = new PacketStage(rows, TEXTS);
    const speed = element('label', {}, 'packets per second ', this.#speed);
    const story = element('div', { class: 'story' }, this.#caption);
    story.insertAdjacentHTML('beforeend', packetLegend());
    story.append(speed);
    this.element = element('div', {}, this.#stage.element, story);
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
    this.#flying = [];
    this.#waiting = [];
  }

  label(place: StageNode, lines: readonly string[]): void {
    this.#stage.label(place, lines);
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
    this.#flying = this.#flying.filter(({ startMs }) => nowMs - startMs < FLIGHT_MS);
    this.#stage.show(
      this.#flying.map(({ packet, startMs }) => ({ packet, share: Math.max(0, nowMs - startMs) / FLIGHT_MS })),
    );
  }

  #launch(nowMs: number): void {
    const packet = this.#waiting.shift();
    if (packet === undefined) {
      if (!this.#isLoading && this.#flying.length === 0) void this.#refill();
      return;
    }
    this.#launchedMs = nowMs;
    const { psn, relativePsn, row, isLost, isRepeated, from, operation } = packet;
    this.#flying.push({ packet, startMs: nowMs });
    const direction = from === 'a' ? 'A → B' : 'B → A';
    const wire = `PSN 0x${psn.toString(16).padStart(6, '0')}`;
    const number = relativePsn === null ? wire : `packet ${relativePsn} of the connection (${wire})`;
    const fate = isLost ? ': lost' : isRepeated ? ': retransmitted' : '';
    this.#caption.textContent = `${direction}, QP ${row + 1}: ${operation}, ${number}${fate}`;
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
}
