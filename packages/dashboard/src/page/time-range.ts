/**
 * A window on a strip that shows the whole time: dragged, resized at its edges, or moved by keys. In follow mode it
 * stays at the newest end.
 */

import { element, svgElement } from './dom.js';
import type { ChartMark, Stretch } from './time-chart.js';

const HEIGHT = 48;
const KEY_STEP = 0.02;
const NARROWEST = 0.005;

type Grip = 'from' | 'to' | 'window';

interface TimeRangeOptions {
  readonly label: string;
  readonly format: (x: number) => string;
  /** How much is shown while it follows the newest; undefined: it does not follow, and begins with all there is. */
  readonly followSpan?: number;
  readonly onChange: () => void;
}

export class TimeRange {
  readonly element: HTMLElement;
  readonly #options: TimeRangeOptions;
  readonly #svg = svgElement('svg', { class: 'strip', height: HEIGHT, 'aria-hidden': 'true' });
  readonly #grips: Readonly<Record<Grip, HTMLElement>>;
  readonly #track: HTMLElement;
  readonly #text = element('output');
  readonly #newest = element('button', { type: 'button' }, 'Follow the newest');
  #whole: Stretch = { from: 0, to: 1 };
  #window: Stretch = { from: 0, to: 1 };
  #isFollowing = true;

  constructor(options: TimeRangeOptions) {
    this.#options = options;
    const grip = (name: Grip, label: string) =>
      element('div', { class: `grip ${name}`, role: 'slider', tabindex: 0, 'aria-label': label });
    this.#grips = {
      window: grip('window', `${options.label}: the stretch that is shown`),
      from: grip('from', `${options.label}: start of the stretch`),
      to: grip('to', `${options.label}: end of the stretch`),
    };
    this.#track = element('div', { class: 'track' }, ...Object.values(this.#grips));
    this.#track.prepend(this.#svg);
    this.#newest.hidden = true;
    this.#newest.addEventListener('click', () => this.follow());
    this.element = element('div', { class: 'time-range' }, this.#track, this.#text, this.#newest);
    for (const [name, gripElement] of Object.entries(this.#grips) as Array<[Grip, HTMLElement]>) {
      gripElement.addEventListener('pointerdown', (event) => this.#drag(name, event));
      gripElement.addEventListener('keydown', (event) => this.#key(name, event));
    }
  }

  get stretch(): Stretch {
    return this.#window;
  }

  get isFollowing(): boolean {
    return this.#isFollowing;
  }

  show(x: readonly number[], values: readonly number[], marks: readonly ChartMark[] = []): void {
    if (x.length === 0) return;
    const [from, to] = [x[0], x[x.length - 1]];
    this.#whole = { from, to: Math.max(to, from + Number.EPSILON) };
    const { followSpan } = this.#options;
    if (this.#isFollowing)
      this.#window = { from: followSpan === undefined ? from : Math.max(from, to - followSpan), to };
    else this.#window = this.#within(this.#window.from, this.#window.to - this.#window.from);
    this.#drawStrip(x, values, marks);
    this.#place();
  }

  select({ from, to }: Stretch): void {
    this.#isFollowing = false;
    const narrowest = (this.#whole.to - this.#whole.from) * NARROWEST;
    this.#window = this.#within(from, Math.max(to - from, narrowest));
    this.#place();
    this.#options.onChange();
  }

  follow(): void {
    this.#isFollowing = true;
    const { followSpan } = this.#options;
    const { from, to } = this.#whole;
    this.#window = { from: followSpan === undefined ? from : Math.max(from, to - followSpan), to };
    this.#place();
    this.#options.onChange();
  }

  #within(from: number, span: number): Stretch {
    const { from: first, to: last } = this.#whole;
    const length = Math.min(span, last - first);
    const start = Math.min(Math.max(from, first), last - length);
    return { from: start, to: start + length };
  }

  #drag(grip: Grip, down: PointerEvent): void {
    const target = down.currentTarget as HTMLElement;
    const width = this.#track.clientWidth;
    const start = this.#window;
    const perPixel = (this.#whole.to - this.#whole.from) / width;
    target.setPointerCapture(down.pointerId);
    const move = (event: PointerEvent) => this.#moveFrom(start, grip, (event.clientX - down.clientX) * perPixel);
    target.addEventListener('pointermove', move);
    target.addEventListener('lostpointercapture', () => target.removeEventListener('pointermove', move), {
      once: true,
    });
  }

  #key(grip: Grip, event: KeyboardEvent): void {
    const direction = { ArrowLeft: -1, ArrowRight: 1, Home: Number.NEGATIVE_INFINITY, End: Number.POSITIVE_INFINITY }[
      event.key
    ];
    if (direction === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const whole = this.#whole.to - this.#whole.from;
    this.#moveFrom(this.#window, grip, Math.min(Math.max(direction * KEY_STEP, -1), 1) * whole);
  }

  #moveFrom({ from, to }: Stretch, grip: Grip, by: number): void {
    const narrowest = (this.#whole.to - this.#whole.from) * NARROWEST;
    if (grip === 'window') this.select(this.#within(from + by, to - from));
    else if (grip === 'from') {
      const start = Math.max(this.#whole.from, Math.min(from + by, to - narrowest));
      this.select({ from: start, to });
    } else this.select({ from, to: Math.min(this.#whole.to, Math.max(to + by, from + narrowest)) });
  }

  #place(): void {
    const { from: first, to: last } = this.#whole;
    const share = (x: number) => (100 * (x - first)) / (last - first);
    const { from, to } = this.#window;
    const { window, from: start, to: end } = this.#grips;
    window.style.left = `${share(from)}%`;
    window.style.width = `${share(to) - share(from)}%`;
    start.style.left = `${share(from)}%`;
    end.style.left = `${share(to)}%`;
    const words = `${this.#options.format(from)} to ${this.#options.format(to)}`;
    for (const [grip, x] of [
      [window, from],
      [start, from],
      [end, to],
    ] as const) {
      grip.setAttribute('aria-valuemin', String(first));
      grip.setAttribute('aria-valuemax', String(last));
      grip.setAttribute('aria-valuenow', String(x));
      grip.setAttribute('aria-valuetext', grip === window ? words : this.#options.format(x));
    }
    const all = from <= first && to >= last;
    this.#text.textContent = all ? `${words}: all there is` : words;
    this.#newest.hidden = this.#isFollowing || this.#options.followSpan === undefined;
  }

  #drawStrip(x: readonly number[], values: readonly number[], marks: readonly ChartMark[]): void {
    const width = this.#track.clientWidth;
    if (width === 0) return;
    const { from, to } = this.#whole;
    const left = (value: number) => (((value - from) / (to - from)) * width).toFixed(1);
    const most = values.reduce((max, value) => Math.max(max, value), 0) || 1;
    const points = values.map((value, i) => `${left(x[i])},${(HEIGHT - (value / most) * (HEIGHT - 6)).toFixed(1)}`);
    const area = `${left(x[0])},${HEIGHT} ${points.join(' ')} ${left(x[x.length - 1])},${HEIGHT}`;
    this.#svg.setAttribute('viewBox', `0 0 ${width} ${HEIGHT}`);
    this.#svg.replaceChildren(
      svgElement('polygon', { points: area }),
      ...marks.map((mark) =>
        svgElement(
          'line',
          { x1: left(mark.x), x2: left(mark.x), y1: 0, y2: HEIGHT },
          svgElement('title', {}, mark.text),
        ),
      ),
    );
  }
}
