/** `sim run --series`: what the rate controls of flows allowed over time, as CSV, or as JSON where the file's name ends so. */

import type { ControlSample } from '../../sim/scenario/control-samples.js';

const FIELDS = [
  'timeNs',
  'id',
  'from',
  'to',
  'sentBps',
  'rateBps',
  'targetRateBps',
  'alpha',
  'windowBytes',
] as const satisfies readonly (keyof ControlSample)[];

/** Collects the samples of a run. */
export class SeriesFile {
  readonly #isJson: boolean;
  readonly #lines: string[] = [];

  /** `path` says which form it takes. */
  constructor(path: string) {
    this.#isJson = path.toLowerCase().endsWith('.json');
  }

  /** Takes one sample. */
  readonly add = (sample: ControlSample): void => {
    this.#lines.push(this.#isJson ? JSON.stringify(sample) : FIELDS.map((field) => sample[field] ?? '').join(','));
  };

  /** CSV with a head line and an empty cell where a scheme has no such value, or a JSON array with null there. */
  text(): string {
    if (this.#isJson) return `[\n${this.#lines.join(',\n')}\n]\n`;
    return `${[FIELDS.join(','), ...this.#lines].join('\n')}\n`;
  }
}
