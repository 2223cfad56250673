import { type BarRow, barRows, colorLegend, formatRate } from '@rocev2/command/plot';
import { element } from '@rocev2/dashboard/parts';
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
  readonly element = element('div');

  show(
    scene: SimulatedScene,
    means: ReadonlyMap<string, readonly number[]>,
    text: (key: TextKey) => string,
    nameOf: (name: string) => string,
  ): void {
    const legend = scene.series.map(({ label, color }) => ({ label: text(label), color }));
    const rows = [...means].map(
      ([name, values]): BarRow => ({
        label: nameOf(name),
        bars: values.map((value, i) => {
          const { color, unit, max = scene.barMax } = scene.series[i];
          return { value, max, color, text: formatOf(unit)(value) };
        }),
      }),
    );
    this.element.innerHTML = colorLegend(legend) + barRows(rows);
  }
}
