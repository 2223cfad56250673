import type { LabLatency } from '../messages/lab-messages.js';
import { element, svgElement } from './dom.js';
import { formatNs } from './format.js';

const WIDTH = 480;
const HEIGHT = 190;
const BOTTOM = 160;

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
    const floor = svgElement('line', { x1: 0, x2: WIDTH, y1: BOTTOM, y2: BOTTOM });
    if (buckets.length === 0) {
      this.#svg.replaceChildren(floor);
      return;
    }
    const from = Math.log10(buckets[0].fromNs || 1);
    const span = Math.log10(buckets[buckets.length - 1].toNs) - from;
    const x = (ns: number) => ((Math.log10(ns || 1) - from) / span) * WIDTH;
    const most = Math.max(...buckets.map((bucket) => bucket.count));
    const bars = buckets.map((bucket) => {
      const height = Math.max(1, (bucket.count / most) * (BOTTOM - 10));
      const left = x(bucket.fromNs);
      return svgElement('rect', {
        class: 'bar',
        x: left,
        y: BOTTOM - height,
        width: Math.max(1, x(bucket.toNs) - left - 1),
        height,
      });
    });
    const label = (ns: number, anchor: string) =>
      svgElement('text', { x: x(ns), y: BOTTOM + 20, 'text-anchor': anchor }, formatNs(ns));
    this.#svg.replaceChildren(
      floor,
      ...bars,
      label(buckets[0].fromNs, 'start'),
      label(buckets[buckets.length - 1].toNs, 'end'),
    );
  }
}
