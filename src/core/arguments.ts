import { namesHint, nearestName } from './did-you-mean.js';
import { RoceError } from './errors.js';

/** Calls no method of the value, which may be any object. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value}'`;
  if (value === null) return 'null';
  return typeof value === 'object' || typeof value === 'function' ? `of type ${typeof value}` : String(value);
}

export function checkWhole(name: string, value: unknown, min: number, max: number): number {
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return value as number;
  const range = min === max ? `it must be ${min}` : `it must be a whole number from ${min} to ${max}`;
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `${name} is ${shown(value)}`, range);
}

export function checkOneOf<T>(name: string, value: unknown, all: readonly T[]): number {
  const place = all.indexOf(value as T);
  if (place >= 0) return place;
  const code = typeof value === 'number' ? 'ERR_ROCE_OUT_OF_RANGE' : 'ERR_ROCE_UNKNOWN_NAME';
  throw new RoceError(code, `${name} is ${shown(value)}`, namesHint(value, all.map(String), 'it must be one of'));
}

export function checkKind(name: string, value: unknown, right: boolean, what: string): void {
  if (!right) throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', `${name} is ${shown(value)}`, `it must be ${what}`);
}

export function checkBoolean(name: string, value: unknown): void {
  checkKind(name, value, typeof value === 'boolean', 'true or false');
}

export function checkText(name: string, value: unknown): void {
  checkKind(name, value, typeof value === 'string', 'text');
}

/** An optional part is checked if it is there. */
export function ifGiven<T>(value: T | undefined, check: (value: T) => void): void {
  if (value !== undefined) check(value);
}

export function checkObject(name: string, value: unknown, what: string): void {
  checkKind(name, value, typeof value === 'object' && value !== null && !Array.isArray(value), what);
}

/** Every option of `T`, for {@link checkOptions}: the compiler reports a missing one. */
export type OptionNames<T> = { readonly [K in keyof T]-?: true };

/** Rejects unknown options: a misspelt option must not be ignored. */
export function checkOptions<T extends object>(call: string, options: T, known: OptionNames<T>): void {
  checkObject(`the options of ${call}`, options, 'an object');
  for (const name in options) {
    if (Object.hasOwn(known, name)) continue;
    const names = Object.keys(known);
    const meant = nearestName(name, names);
    const hint = meant === undefined ? `it takes ${names.join(', ')}` : `did you mean '${meant}'?`;
    throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `${call} has no option '${name}'`, hint);
  }
}
