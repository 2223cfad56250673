/**
 * Parameters of schemes as tables: name, default, range. From a table follow the checks, the form in which parameters
 * cross the command ring (a block of numbers in table order), the rows of the documentation and the keys of
 * `--cc-params` and `--recovery-params`. Units end the names.
 */

import { shown } from './arguments.js';
import { namesHint } from './did-you-mean.js';
import { RoceError } from './errors.js';

/** One parameter: a number between `min` and `max`, both included. */
export interface ParameterRange {
  /** The value if the user names none. */
  readonly default: number;
  /** The smallest value. */
  readonly min: number;
  /** The largest value. */
  readonly max: number;
  /** Only whole numbers. */
  readonly whole?: true;
  /** Both ends of a connection need the same value; the connection exchange compares it. */
  readonly agreed?: true;
}

/** Parameters by name. The end of a name is its unit: `Ns`, `Bps`, `Bytes`, `Packets`; none for plain numbers. */
export type ParameterTable = Readonly<Record<string, ParameterRange>>;

/** The values that belong to a table: a number for each of its parameters. */
export type ParametersOf<T extends ParameterTable> = { readonly [K in keyof T]: number };

/** The most parameters that one scheme can have: what one field of a command holds. */
export const PARAMETERS_MAX = 24;

export const LIMITS = {
  /** From a kilobit to ten terabit per second: a packet never waits longer than half a minute. */
  rateBps: { min: 1e3, max: 1e13 },
  rateOrZeroBps: { min: 0, max: 1e13 },
  /** Up to ten seconds; zero disables the function of the parameter. */
  timeOrZeroNs: { min: 0, max: 1e10 },
  timeNs: { min: 100, max: 1e10 },
  bytesOrZero: { min: 0, max: 1e12 },
  bytes: { min: 1, max: 1e12 },
  share: { min: 0, max: 1 },
  flag: { min: 0, max: 1, whole: true },
} as const;

/** `kind` names the owner of the parameters in errors. */
export function completeParameters<T extends ParameterTable>(
  kind: string,
  table: T,
  given: Readonly<Record<string, number | undefined>>,
): ParametersOf<T> {
  const values: Record<string, number> = {};
  for (const [name, range] of Object.entries(table)) {
    const value = given[name] === undefined ? range.default : given[name];
    if (!isInRange(range, value)) {
      throw new RoceError(
        'ERR_ROCE_OUT_OF_RANGE',
        `${kind} parameter ${name} is ${shown(value)}`,
        `it must be ${range.whole === true ? 'a whole number ' : ''}from ${range.min} to ${range.max}`,
      );
    }
    values[name] = value;
  }
  const unknown = Object.keys(given).find((name) => given[name] !== undefined && !Object.hasOwn(table, name));
  if (unknown === undefined) return values as ParametersOf<T>;
  const names = Object.keys(table);
  throw new RoceError(
    'ERR_ROCE_UNKNOWN_NAME',
    `there is no ${kind} parameter ${unknown} here`,
    names.length === 0 ? 'this scheme has none' : namesHint(unknown, names, 'there are'),
  );
}

export function isInRange({ min, max, whole }: ParameterRange, value: unknown): boolean {
  return typeof value === 'number' && value >= min && value <= max && (whole !== true || Number.isInteger(value));
}

export function packParameters(table: ParameterTable, values: Readonly<Record<string, number>>): Float64Array {
  return Float64Array.from(Object.keys(table), (name) => values[name]);
}

export function unpackParameters(table: ParameterTable, block: Float64Array): Record<string, number> {
  return Object.fromEntries(Object.keys(table).map((name, i) => [name, block[i]]));
}
