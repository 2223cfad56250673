/** A ladder diagram that scrolls, and tells about the packet that is chosen. */

import {
  drawLadder,
  filled,
  LADDER_TEXTS,
  type LadderConnection,
  type LadderPacket,
  type LadderTexts,
  packetLegend,
  packetWords,
} from '@rocev2/command/plot';
import { element, svgElement } from './dom.js';

export const RUNGS_MAX = 400;
const FONT_PX = 12;
const REVEAL_MARGIN = 40;
const measuring = document.createElement('canvas').getContext('2d')!;

interface LadderOptions {
  /** Draw long runs of data packets as one band, which a click opens. */
  readonly isFolded?: boolean;
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
  #rungs: readonly Element[] = [];
  /** By packet: the place of its rung, which packets of a fold share. */
  #rungOf: readonly number[] = [];
  /** By rung: where its packet leaves. */
  #sentY: readonly number[] = [];
  #opened = new Set<LadderPacket>();
  readonly #isFolded: boolean;
  #chosen: number | undefined;
  #width = 0;

  constructor(ends: LadderConnection['ends'], { isFolded = false }: LadderOptions = {}) {
    this.#ends = ends;
    this.#isFolded = isFolded;
    this.element = element('div', {}, this.#head, this.#scroll);
    this.translate(LADDER_TEXTS);
    this.#svg.addEventListener('click', ({ target }) => {
      const rung = (target as Element).closest('.rung');
      if (rung !== null) this.choose(this.#rungOf.indexOf(this.#rungs.indexOf(rung)));
    });
    new ResizeObserver(() => this.#resize()).observe(this.#scroll);
  }

  translate(texts: LadderTexts): void {
    this.#texts = texts;
    this.#head.replaceChildren(this.#detail);
    this.#head.insertAdjacentHTML('beforeend', packetLegend(texts));
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
      packet !== undefined ? packetWords(packet, this.#ends, this.#texts) : shown === 0 ? none : about.join(' ');
  }

  get chosen(): number | undefined {
    return this.#chosen;
  }

  choose(index: number): void {
    const packet = this.#packets[index];
    if (packet === undefined) return;
    if (this.#rungAt(index)?.classList.contains('fold')) this.#open(index);
    if (this.#chosen !== undefined) this.#rungAt(this.#chosen)?.classList.remove('chosen');
    this.#chosen = index;
    this.#rungAt(index)?.classList.add('chosen');
    this.#tell();
    this.#scroll.scrollTop = this.#yOf(index) - this.#scroll.clientHeight / 2;
  }

  #rungAt(index: number): Element | undefined {
    return this.#rungs[this.#rungOf[index]];
  }

  #open(index: number): void {
    const rung = this.#rungOf[index];
    for (const [i, packet] of this.#packets.entries()) if (this.#rungOf[i] === rung) this.#opened.add(packet);
    this.#draw();
  }

  #yOf(index: number): number {
    return this.#sentY[this.#rungOf[index]] ?? 0;
  }

  /** Scrolls so far that the first loss and the NAK that answers it can be seen, if there is room for both. */
  #reveal(): void {
    this.#scroll.scrollTop = 0;
    if (this.#rungs.length === 0) return;
    const loss = this.#packets.findIndex(({ isLost }) => isLost);
    const nak = this.#packets.findIndex(({ kind }, i) => kind === 'nak' && i > loss);
    if (nak < 0) return;
    const wanted = this.#yOf(nak) + REVEAL_MARGIN - this.#scroll.clientHeight;
    const most = loss < 0 ? wanted : this.#yOf(loss) - REVEAL_MARGIN;
    this.#scroll.scrollTop = Math.max(0, Math.min(wanted, most));
  }

  #resize(): void {
    const width = Math.floor(this.#scroll.clientWidth);
    if (width === 0 || width === this.#width) return;
    this.#width = width;
    this.#draw();
  }

  #draw(): void {
    if (this.#width === 0) return;
    measuring.font = `${FONT_PX}px ${getComputedStyle(this.#svg).fontFamily}`;
    const { markup, height, rungOf, sentY } = drawLadder(this.#packets, {
      ends: this.#ends,
      width: this.#width,
      texts: this.#texts,
      isFolded: this.#isFolded,
      opened: this.#opened,
      widthOf: (text) => measuring.measureText(text).width,
    });
    this.#svg.setAttribute('viewBox', `0 0 ${this.#width} ${height}`);
    this.#svg.setAttribute('height', String(height));
    this.#svg.innerHTML = markup;
    this.#rungs = [...this.#svg.querySelectorAll('.rung')];
    [this.#rungOf, this.#sentY] = [rungOf, sentY];
    if (this.#chosen !== undefined) this.#rungAt(this.#chosen)?.classList.add('chosen');
  }
}
