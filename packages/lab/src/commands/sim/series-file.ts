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

export class SeriesFile {
  readonly #isJson: boolean;
  readonly #lines: string[] = [];

  constructor(path: string) {
    this.#isJson = path.toLowerCase().endsWith('.json');
  }

  readonly add = (sample: ControlSample): void => {
    this.#lines.push(this.#isJson ? JSON.stringify(sample) : FIELDS.map((field) => sample[field] ?? '').join(','));
  };

  text(): string {
    if (this.#isJson) return `[\n${this.#lines.join(',\n')}\n]\n`;
    return `${[FIELDS.join(','), ...this.#lines].join('\n')}\n`;
  }
}
