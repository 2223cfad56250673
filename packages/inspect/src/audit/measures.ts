import { Distribution, type DistributionSummary } from './distribution.js';

/** What is measured, and its unit. */
export const MEASURES = {
  'NAK generation': 'ns',
  'NAK reaction': 'ns',
  retransmission: 'ns',
  'transport timeout': 'ns',
  'PSNs outstanding': 'packets',
  'PSNs per acknowledgement': 'packets',
  'CNP interval of a queue pair': 'ns',
  'CNP interval of a pair of addresses': 'ns',
  'CNP interval of a sender': 'ns',
  'rate after a CNP': '% of the rate before',
  'DCQCN g, fitted': 'one in',
  'DCQCN rate timer, fitted': 'ns',
  'DCQCN R_AI, fitted': 'bit/s',
} as const;
/** Unit of the values of a measure. */
export type MeasureUnit = (typeof MEASURES)[keyof typeof MEASURES];
/** Name of the measured quantity. */
export type MeasureName = keyof typeof MEASURES;

/** One distribution. */
export interface Measure extends DistributionSummary {
  /** Name of the measured quantity. */
  readonly name: MeasureName;
  /**
   * Nanoseconds between stamps of the capture, packets, percent, bits per second; `one in`: the inverse is what was
   * measured.
   */
  readonly unit: MeasureUnit;
}

/** How often peers chose one of several alternatives. */
export interface Choice {
  /** Number of the rule that allows the choice. */
  readonly rule: number;
  /** The alternative. */
  readonly choice: string;
  /** How often. */
  readonly count: number;
  /** Number of the first packet that showed it. */
  readonly packet: number;
}

const CHOICES_MAX = 256;

export class Measures {
  readonly #distributions = new Map<MeasureName, Distribution>();
  readonly #choices = new Map<string, { rule: number; choice: string; count: number; packet: number }>();

  add(name: MeasureName, value: number): void {
    let distribution = this.#distributions.get(name);
    if (distribution === undefined) {
      distribution = new Distribution();
      this.#distributions.set(name, distribution);
    }
    distribution.add(value);
  }

  choose(rule: number, choice: string, packet: number): boolean {
    const key = `${rule} ${choice}`;
    const known = this.#choices.get(key);
    if (known !== undefined) known.count++;
    else if (this.#choices.size < CHOICES_MAX) {
      this.#choices.set(key, { rule, choice, count: 1, packet });
      return true;
    }
    return false;
  }

  get measures(): Measure[] {
    return (Object.keys(MEASURES) as MeasureName[]).flatMap((name) => {
      const summary = this.#distributions.get(name)?.summary();
      return summary === undefined ? [] : [{ name, unit: MEASURES[name], ...summary }];
    });
  }

  get choices(): Choice[] {
    return [...this.#choices.values()].sort((one, other) => one.rule - other.rule || other.count - one.count);
  }
}
