import { formatCount, formatNs, logTicks } from '@rocev2/command/plot';
import type { LabLatency } from '../messages/lab-messages.js';
import { element, svgElement } from './dom.js';

const WIDTH = 400;
const HEIGHT = 214;
const LEFT = 52;
const TOP = 12;
const BOTTOM = 164;

interface HistogramWords {
  readonly of: (count: number) => string;
  readonly none: string;
}

export class HistogramView {
  readonly #svg = svgElement('svg', { class: 'histogram', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img' });
  readonly #summary = element('p');
  readonly element = element('div', {}, this.#svg, this.#summary);
  readonly #words: HistogramWords;

  constructor(words: HistogramWords) {
    this.#words = words;
  }

  show({ count, p50Ns, p99Ns, maxNs, buckets }: LabLatency): void {
    this.#summary.textContent =
      count === 0
        ? this.#words.none
        : `${this.#words.of(count)}: median ${formatNs(p50Ns)}, p99 ${formatNs(p99Ns)}, longest ${formatNs(maxNs)}`;
    this.#svg.setAttribute('aria-label', this.#summary.textContent);
    this.#svg.toggleAttribute('hidden', count === 0);
    if (buckets.length === 0) {
      this.#svg.replaceChildren();
      return;
    }
    const from = Math.log10(buckets[0].fromNs || 1);
    const to = Math.log10(buckets[buckets.length - 1].toNs);
    const x = (ns: number) => LEFT + ((Math.log10(ns || 1) - from) / (to - from)) * (WIDTH - LEFT - 8);
    const most = Math.max(...buckets.map((bucket) => bucket.count));
    const y = (value: number) => BOTTOM - (value / most) * (BOTTOM - TOP);
    const bars = buckets.map((bucket) => {
      const top = Math.min(y(bucket.count), BOTTOM - 1);
      const left = x(bucket.fromNs);
      const width = Math.max(1, x(bucket.toNs) - left - 1);
      const words = `${formatNs(bucket.fromNs)} to ${formatNs(bucket.toNs)}: ${formatCount(bucket.count)}`;
      const box = { class: 'bar', x: left, y: top, width, height: BOTTOM - top };
      return svgElement('rect', box, svgElement('title', {}, words));
    });
    const counts = [...new Set([0, Math.round(most / 2), most])];
    const middle = (LEFT + WIDTH) / 2;
    this.#svg.replaceChildren(
      ...counts.flatMap((value) => [
        svgElement('line', { x1: LEFT, x2: WIDTH, y1: y(value), y2: y(value) }),
        svgElement('text', { x: LEFT - 6, y: y(value) + 4, 'text-anchor': 'end' }, formatCount(value)),
      ]),
      ...logTicks(10 ** from, 10 ** to).flatMap((ns) => [
        svgElement('line', { x1: x(ns), x2: x(ns), y1: BOTTOM, y2: BOTTOM + 5 }),
        svgElement(
          'text',
          { x: x(ns), y: BOTTOM + 19, 'text-anchor': x(ns) > WIDTH - 24 ? 'end' : 'middle' },
          formatNs(ns),
        ),
      ]),
      ...bars,
      svgElement('text', { x: middle, y: HEIGHT - 6, 'text-anchor': 'middle' }, 'latency, logarithmic'),
      svgElement(
        'text',
        { x: 12, y: (TOP + BOTTOM) / 2, 'text-anchor': 'middle', transform: `rotate(-90 12 ${(TOP + BOTTOM) / 2})` },
        'count',
      ),
    );
  }
}
