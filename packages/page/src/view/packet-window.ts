/** Packets around a moment of virtual time, which can be dragged, played and stepped by packet. */

import { formatNs, type LadderPacket, type LadderTexts } from '@rocev2/command/plot';
import { element, type Flight, LadderView, PacketStage } from '@rocev2/dashboard/parts';
import { FROM_RECEIVER, LOST, NAK, type PacketColumns, REPEATED, type TextKey } from '../scenes/index.js';

type Translate = (key: TextKey, numbers?: Readonly<Record<string, string>>) => string;

const BEFORE = 20;
const SHOWN = 60;
/** Virtual nanoseconds in a second of real time. */
const SPEEDS_NS = [100, 1_000, 10_000, 100_000, 1_000_000];
const FIRST_SPEED = 2;
const DRAW_MS = 100;
const STEPS = 10_000;
/** Packets before the moment that may be on their way. */
const LOOKED_AT = 200;
const FLIGHTS_MAX = 60;

export class PacketWindow {
  readonly element: HTMLElement;
  readonly #time = element('input', { type: 'range', min: 0, max: STEPS, value: 0 });
  readonly #shownTime = element('output', { class: 'time-now' });
  readonly #play = element('button', { type: 'button' });
  readonly #speed = element('input', { type: 'range', min: 0, max: SPEEDS_NS.length - 1, value: FIRST_SPEED });
  readonly #shownSpeed = element('output');
  readonly #speedLabel = element('label', { class: 'speed' });
  readonly #back = element('button', { type: 'button' }, '◀');
  readonly #forward = element('button', { type: 'button' }, '▶');
  readonly #toLoss = element('button', { type: 'button' });
  readonly #ladder = new LadderView({ a: '', b: '' });
  readonly #stage: PacketStage;
  readonly #onTime: (timeNs: number) => void;
  #text: Translate;
  #packets: PacketColumns | undefined;
  #durationNs = 1;
  #timeNs = 0;
  #drawnMs = 0;
  #from = -1;
  #isPlaying = false;
  /** The user has chosen the moment. */
  #isChosen = false;

  constructor(text: Translate, onTime: (timeNs: number) => void) {
    this.#text = text;
    this.#onTime = onTime;
    this.#stage = new PacketStage(1, this.#stageTexts());
    this.#speedLabel.append(this.#speed, this.#shownSpeed);
    const steps = element('div', { class: 'steps' }, this.#play, this.#back, this.#forward, this.#toLoss);
    this.element = element(
      'div',
      { class: 'packet-window' },
      element('div', { class: 'timeline' }, this.#time, this.#shownTime),
      element('div', { class: 'story' }, steps, this.#speedLabel),
      this.#stage.element,
      this.#ladder.element,
    );
    this.#time.addEventListener('input', () => this.#choose((this.#time.valueAsNumber / STEPS) * this.#durationNs));
    this.#speed.addEventListener('input', () => this.#translateSpeed());
    this.#play.addEventListener('click', () => this.#setPlaying(!this.#isPlaying));
    this.#back.addEventListener('click', () => this.#step(-1));
    this.#forward.addEventListener('click', () => this.#step(1));
    this.#toLoss.addEventListener('click', () => {
      this.#isChosen = true;
      this.#goToLoss(this.#index() + 1);
    });
    this.translate(text);
  }

  translate(text: Translate, ladder?: LadderTexts): void {
    this.#text = text;
    if (ladder !== undefined) this.#ladder.translate(ladder);
    this.#stage.translate(this.#stageTexts());
    this.#time.setAttribute('aria-label', text('time'));
    this.#speed.setAttribute('aria-label', text('slower'));
    this.#back.setAttribute('aria-label', text('back'));
    this.#forward.setAttribute('aria-label', text('forward'));
    this.#toLoss.textContent = text('toLoss');
    this.#setPlaying(this.#isPlaying);
    this.#translateSpeed();
    this.#from = -1;
    this.#draw();
  }

  /** Shows the first loss, or the moment that the user has chosen. Without packets the ladder is empty. */
  show(packets: PacketColumns | undefined, durationNs: number): void {
    this.#packets = packets;
    this.#durationNs = durationNs;
    this.#from = -1;
    if (packets === undefined || this.#isChosen) this.#goTo(this.#timeNs);
    else this.#goToLoss(0);
  }

  #stageTexts() {
    const names = { a: this.#text('sender'), switch: this.#text('switch'), b: this.#text('receiver') };
    return { image: this.#text('stage'), names, shortNames: names };
  }

  #translateSpeed(): void {
    const time = formatNs(SPEEDS_NS[this.#speed.valueAsNumber]);
    this.#shownSpeed.textContent = this.#text('perSecond', { time });
    this.#speed.setAttribute('aria-valuetext', this.#shownSpeed.textContent);
  }

  #setPlaying(isPlaying: boolean): void {
    const begins = isPlaying && !this.#isPlaying;
    this.#isPlaying = isPlaying;
    this.#play.textContent = this.#text(isPlaying ? 'pause' : 'play');
    if (begins) this.#advance(performance.now());
  }

  #advance(lastMs: number): void {
    requestAnimationFrame((nowMs) => {
      if (!this.#isPlaying) return;
      const passedNs = (Math.max(0, nowMs - lastMs) / 1000) * SPEEDS_NS[this.#speed.valueAsNumber];
      const timeNs = Math.min(this.#durationNs, this.#timeNs + passedNs);
      this.#choose(timeNs, nowMs - this.#drawnMs >= DRAW_MS);
      if (timeNs >= this.#durationNs) this.#setPlaying(false);
      else this.#advance(nowMs);
    });
  }

  #choose(timeNs: number, isDrawn = true): void {
    this.#isChosen = true;
    this.#goTo(timeNs, isDrawn);
  }

  #goTo(timeNs: number, isDrawn = true): void {
    this.#timeNs = timeNs;
    this.#stage.show(this.#packets === undefined ? [] : flightsAt(this.#packets, timeNs, this.#index()));
    if (isDrawn) this.#draw();
  }

  /** The last packet that had left; -1 before the first. */
  #index(): number {
    const { sentNs } = this.#packets ?? { sentNs: new Float64Array() };
    let [low, high] = [0, sentNs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sentNs[middle] <= this.#timeNs) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  #step(by: number): void {
    if (this.#packets === undefined) return;
    this.#setPlaying(false);
    const { sentNs } = this.#packets;
    const index = Math.max(0, Math.min(sentNs.length - 1, this.#index() + by));
    // Packets that leave at one time are one step.
    this.#choose(sentNs[index]);
  }

  /** The first loss from a packet on, or of all. */
  #goToLoss(start: number): void {
    if (this.#packets === undefined) return;
    const { flags, sentNs } = this.#packets;
    const next = flags.findIndex((flag, i) => i >= start && (flag & LOST) !== 0);
    const first = flags.findIndex((flag) => (flag & LOST) !== 0);
    const found = next < 0 ? first : next;
    this.#goTo(found < 0 ? (sentNs[Math.min(BEFORE, sentNs.length - 1)] ?? 0) : sentNs[found]);
  }

  #draw(): void {
    this.#drawnMs = performance.now();
    this.#time.value = String(Math.round((this.#timeNs / this.#durationNs) * STEPS));
    this.#shownTime.textContent = formatNs(Math.round(this.#timeNs));
    this.#time.setAttribute('aria-valuetext', this.#shownTime.textContent);
    this.#onTime(this.#timeNs);
    const ends = { a: this.#text('sender'), b: this.#text('receiver') };
    if (this.#packets === undefined) {
      this.#ladder.show([], ends);
      return;
    }
    const index = this.#index();
    const from = Math.max(0, Math.floor((index - BEFORE) / BEFORE) * BEFORE);
    if (from !== this.#from) {
      this.#from = from;
      this.#ladder.show(ladderPackets(this.#packets, from, SHOWN), ends);
    }
    if (index >= 0) this.#ladder.choose(index - from);
  }
}

/** Packets that have left and not arrived. Those that never arrive are lost after the usual time. */
function flightsAt(packets: PacketColumns, timeNs: number, newest: number): Flight[] {
  const { sentNs, arrivedNs } = packets;
  const flights: Flight[] = [];
  let usualNs = 1;
  for (let i = newest; i >= 0 && i > newest - LOOKED_AT && flights.length < FLIGHTS_MAX; i--) {
    const tookNs = arrivedNs[i] - sentNs[i];
    if (tookNs > 0) usualNs = tookNs;
    const share = (timeNs - sentNs[i]) / (tookNs > 0 ? tookNs : usualNs);
    if (share >= 1) continue;
    const [packet] = ladderPackets(packets, i, 1);
    flights.push({ packet: { ...packet, row: 0 }, share: Math.max(0, share) });
  }
  return flights;
}

function ladderPackets(packets: PacketColumns, from: number, count: number): LadderPacket[] {
  const { sentNs, arrivedNs, psn, opcode, flags, operations } = packets;
  const to = Math.min(sentNs.length, from + count);
  return Array.from({ length: to - from }, (_, k) => {
    const i = from + k;
    const isFromReceiver = (flags[i] & FROM_RECEIVER) !== 0;
    const isNak = (flags[i] & NAK) !== 0;
    const operation = operations[opcode[i]];
    return {
      number: i + 1,
      sentNs: sentNs[i],
      arrivedNs: Number.isNaN(arrivedNs[i]) ? null : arrivedNs[i],
      from: isFromReceiver ? 'b' : 'a',
      operation: isNak ? 'NAK' : operation,
      psn: psn[i],
      relativePsn: psn[i],
      kind: isNak ? 'nak' : operation.includes('CNP') ? 'cnp' : operation.includes('ACK') ? 'ack' : 'data',
      isLost: (flags[i] & LOST) !== 0,
      isRepeated: (flags[i] & REPEATED) !== 0,
      notes: [],
    };
  });
}
