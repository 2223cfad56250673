/**
 * Parameters of rate controls as tables: name, default, range. From a table follow the checks, the form in which parameters cross the command
 * ring (a block of numbers in table order) and the keys of `--cc-params`. Units end the names.
 */

import { RoceError } from '../core/errors.js';

export interface ParameterRange {
  readonly default: number;
  readonly min: number;
  readonly max: number;
  /** Only whole numbers. */
  readonly whole?: true;
}

export type ParameterTable = Readonly<Record<string, ParameterRange>>;
export type ParametersOf<T extends ParameterTable> = { readonly [K in keyof T]: number };

/** Ranges that several tables share. */
export const LIMITS = {
  /** From a kilobit to ten terabit per second: a packet never waits longer than half a minute. */
  rateBps: { min: 1e3, max: 1e13 },
  /** Rates that may also be off. */
  rateOrZeroBps: { min: 0, max: 1e13 },
  /** Up to ten seconds; zero switches off what the time is for. */
  timeOrZeroNs: { min: 0, max: 1e10 },
  timeNs: { min: 100, max: 1e10 },
  bytesOrZero: { min: 0, max: 1e12 },
  bytes: { min: 1, max: 1e12 },
  share: { min: 0, max: 1 },
  flag: { min: 0, max: 1, whole: true },
} as const;

function checkParameter(table: ParameterTable, name: string, value: unknown): void {
  const { min, max, whole } = table[name];
  if (typeof value === 'number' && value >= min && value <= max && (whole !== true || Number.isInteger(value))) return;
  throw new RoceError(
    'ERR_ROCE_OUT_OF_RANGE',
    `rate control parameter ${name} is ${value}`,
    `it must be ${whole === true ? 'a whole number ' : ''}from ${min} to ${max}`,
  );
}

/**
 * Every parameter of the table: the given ones checked, the others at their defaults. Throws ERR_ROCE_OUT_OF_RANGE or
 * ERR_ROCE_UNKNOWN_NAME.
 */
export function completeParameters<T extends ParameterTable>(
  table: T,
  given: Readonly<Record<string, number | undefined>>,
): ParametersOf<T> {
  const values: Record<string, number> = {};
  for (const name of Object.keys(table)) {
    const value = given[name] ?? table[name].default;
    checkParameter(table, name, value);
    values[name] = value;
  }
  const stranger = Object.keys(given).find((name) => given[name] !== undefined && !Object.hasOwn(table, name));
  if (stranger === undefined) return values as ParametersOf<T>;
  throw new RoceError(
    'ERR_ROCE_UNKNOWN_NAME',
    `there is no rate control parameter ${stranger} here`,
    `there are ${Object.keys(table).join(', ')}`,
  );
}

/** The parameters as a block of numbers, in table order. */
export function packParameters(table: ParameterTable, values: Readonly<Record<string, number>>): Float64Array {
  return Float64Array.from(Object.keys(table), (name) => values[name]);
}

/** The parameters of a block, checked again: the block may come from another thread. Throws ERR_ROCE_OUT_OF_RANGE. */
export function unpackParameters<T extends ParameterTable>(table: T, block: Float64Array): ParametersOf<T> {
  return completeParameters(table, Object.fromEntries(Object.keys(table).map((name, i) => [name, block[i]])));
}
