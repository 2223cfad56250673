import { formatCounted } from '@rocev2/command/plot';
import type { AttachedLatency } from '../messages/attached.js';
import { element } from './dom.js';
import { HistogramView } from './histogram.js';

const NOTHING = element('p', { class: 'muted' }, 'nothing has completed in the last minute');

const wordsOf = (op: string) => ({
  of: (count: number) => `${op}, ${formatCounted(count, 'time')}`,
  none: `no ${op} has completed`,
});

export class LatencyList {
  readonly element = element('div', { class: 'latencies' }, NOTHING.cloneNode(true));
  readonly #views = new Map<string, HistogramView>();

  show(latency: readonly AttachedLatency[]): void {
    for (const row of latency) {
      const view = this.#views.get(row.op) ?? new HistogramView(wordsOf(row.op));
      this.#views.set(row.op, view);
      view.element.dataset['op'] = row.op;
      view.element.dataset['count'] = String(row.count);
      view.show(row);
    }
    const shown = latency.map(({ op }) => this.#views.get(op)!.element);
    this.element.replaceChildren(...(shown.length === 0 ? [NOTHING.cloneNode(true)] : shown));
  }
}
