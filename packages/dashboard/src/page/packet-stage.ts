/** Two ends, the switch between them, and packets on the links. */

import { escapeXml, type LadderPacket, tag } from '@rocev2/command/plot';
import { svgElement } from './dom.js';

const HEIGHT = 190;
const MIDDLE = 85;
const NARROW = 640;
const NODE = { wide: 62, narrow: 38 } as const;
const NODE_MARGIN = { wide: 90, narrow: 48 } as const;
const LINE_HEIGHT = 18;
const ROW_GAP_MAX = 26;
const ROWS_HEIGHT = 60;

const NODES = ['a', 'switch', 'b'] as const;
export type StageNode = (typeof NODES)[number];

export interface StagePacket
  extends Pick<LadderPacket, 'kind' | 'psn' | 'relativePsn' | 'operation' | 'isLost' | 'isRepeated' | 'from'> {
  /** From 0. */
  readonly row: number;
}

/** A packet on its way. */
export interface Flight {
  readonly packet: StagePacket;
  /** Of the way from end to end, 0 to 1. A lost packet ends in the middle. */
  readonly share: number;
}

interface StageTexts {
  readonly image: string;
  readonly names: Readonly<Record<StageNode, string>>;
  /** Where there is little room. */
  readonly shortNames: Readonly<Record<StageNode, string>>;
}

function wordOn({ kind, relativePsn }: StagePacket): string {
  if (relativePsn === null) return kind.toUpperCase();
  return kind === 'nak' ? `NAK ${relativePsn}` : String(relativePsn);
}

export class PacketStage {
  readonly element = svgElement('svg', { class: 'topology', height: HEIGHT, role: 'img' });
  readonly #nodes = svgElement('g');
  readonly #packets = svgElement('g');
  readonly #lines = new Map<StageNode, readonly string[]>();
  readonly #rows: number;
  readonly #rowGap: number;
  #texts: StageTexts;
  #width = 960;

  constructor(rows: number, texts: StageTexts) {
    this.#rows = rows;
    this.#rowGap = Math.min(ROW_GAP_MAX, ROWS_HEIGHT / rows);
    this.#texts = texts;
    this.element.append(this.#nodes, this.#packets);
    this.#draw();
    new ResizeObserver(() => this.#resize()).observe(this.element);
  }

  translate(texts: StageTexts): void {
    this.#texts = texts;
    this.#draw();
  }

  /** Lines below a node. */
  label(place: StageNode, lines: readonly string[]): void {
    this.#lines.set(place, lines);
    this.#draw();
  }

  show(flights: readonly Flight[]): void {
    this.#packets.innerHTML = flights.map((flight) => this.#markupOf(flight)).join('');
  }

  get #isNarrow(): boolean {
    return this.#width < NARROW;
  }

  #resize(): void {
    const width = Math.floor(this.element.clientWidth);
    if (width === 0 || width === this.#width) return;
    this.#width = width;
    this.#draw();
  }

  #xOf(place: StageNode): number {
    const margin = this.#isNarrow ? NODE_MARGIN.narrow : NODE_MARGIN.wide;
    return { a: margin, switch: this.#width / 2, b: this.#width - margin }[place];
  }

  #draw(): void {
    const { image, names: wide, shortNames } = this.#texts;
    this.element.setAttribute('viewBox', `0 0 ${this.#width} ${HEIGHT}`);
    this.element.setAttribute('aria-label', image);
    const half = this.#isNarrow ? NODE.narrow : NODE.wide;
    const names = this.#isNarrow ? shortNames : wide;
    const link = { class: 'link', x1: this.#xOf('a'), x2: this.#xOf('b'), y1: MIDDLE, y2: MIDDLE };
    const nodes = NODES.map((place) => {
      const x = this.#xOf(place);
      const box = { class: 'node', x: x - half, y: MIDDLE - 42, width: 2 * half, height: 84, rx: 10 };
      const lines = this.#linesOf(place).map((line, i) =>
        tag('tspan', { x, dy: i === 0 ? 0 : LINE_HEIGHT }, escapeXml(line)),
      );
      return [
        tag('rect', box),
        tag('text', { x, y: MIDDLE - 52 }, escapeXml(names[place])),
        tag('text', { class: 'small', x, y: MIDDLE + 62 }, ...lines),
      ].join('');
    });
    this.#nodes.innerHTML = tag('line', link) + nodes.join('');
  }

  #linesOf(place: StageNode): readonly string[] {
    const lines = this.#lines.get(place) ?? [];
    return this.#isNarrow ? lines.flatMap((line) => line.split(/ (?=packets?)/)) : [lines.join(' ')];
  }

  #markupOf({ packet, share }: Flight): string {
    const { kind, isLost, isRepeated, from, row } = packet;
    const isDropping = isLost && share > 0.5;
    const way = isDropping ? 0.5 : share;
    const [start, end] = from === 'a' ? [this.#xOf('a'), this.#xOf('b')] : [this.#xOf('b'), this.#xOf('a')];
    const x = start + (end - start) * way;
    const fall = isDropping ? (share - 0.5) * 2 * (HEIGHT - MIDDLE) : 0;
    const y = MIDDLE + (row - (this.#rows - 1) / 2) * this.#rowGap + fall;
    const word = wordOn(packet);
    const width = 14 + 8 * word.length;
    const classes = ['packet', kind, isRepeated ? 'repeated' : '', isDropping ? 'dropped' : ''];
    return tag(
      'g',
      {
        class: classes.filter((name) => name !== '').join(' '),
        transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
        opacity: isDropping ? 2 - 2 * share : 1,
      },
      tag('rect', { x: -width / 2, y: -11, width, height: 22, rx: 5 }),
      tag('text', { y: 4 }, word),
    );
  }
}
