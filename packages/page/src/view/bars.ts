import { element, formatRate } from '@rocev2/dashboard/parts';
import type { SimulatedScene, TextKey } from '../scenes/index.js';

const FORMATS = {
  rate: formatRate,
  bytes: (bytes: number) => `${(bytes / 1000).toFixed(1)} KB`,
  share: (share: number) => `${(share * 100).toFixed(1)} %`,
  count: (count: number) => count.toFixed(2),
  time: (ns: number) => `${(ns / 1000).toFixed(1)} us`,
} as const;

export const formatOf = (unit: keyof typeof FORMATS): ((value: number) => string) => FORMATS[unit];

/** The means of each variant, side by side. */
export class Bars {
  readonly element = element('div', { class: 'bars' });

  show(
    scene: SimulatedScene,
    means: ReadonlyMap<string, readonly number[]>,
    text: (key: TextKey) => string,
    nameOf: (name: string) => string,
  ): void {
    const legend = scene.series.map(({ label, color }) =>
      element('span', {}, element('span', { class: 'swatch', style: `background: var(${color})` }), text(label)),
    );
    const rows = [...means].map(([name, values]) =>
      element(
        'div',
        { class: 'bar-row', 'data-variant': name },
        element('strong', {}, nameOf(name)),
        ...values.map((value, i) => {
          const { color, unit, max = scene.barMax } = scene.series[i];
          const width = Math.min(100, (value / max) * 100);
          const fill = element('span', { class: 'fill', style: `width: ${width}%; background: var(${color})` });
          return element('div', { class: 'bar' }, element('span', { class: 'track' }, fill), formatOf(unit)(value));
        }),
      ),
    );
    this.element.replaceChildren(element('p', { class: 'story' }, ...legend), ...rows);
  }
}
