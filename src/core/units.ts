/**
 * Inside the program they are plain numbers of bytes, bits per second and nanoseconds; only this file knows the
 * spelling. KiB, MiB, GiB are powers of 1024 and KB, MB, GB powers of 1000 (IEC 80000-13); rates are decimal, as link
 * speeds are.
 */

import { RoceError } from './errors.js';

export const NS_PER_US = 1e3;
export const NS_PER_MS = 1e6;
export const NS_PER_S = 1e9;

interface Quantity {
  readonly name: string;
  readonly examples: string;
  /** Unit (lower case) to its value. `''` is the unit of a bare number; absent if a unit is required. */
  readonly units: Readonly<Record<string, number>>;
}

const SIZE: Quantity = {
  name: 'size',
  examples: '4096, 64KiB, 4MiB or 1GiB',
  units: { '': 1, b: 1, kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30, tib: 2 ** 40, kb: 1e3, mb: 1e6, gb: 1e9, tb: 1e12 },
};

const RATE: Quantity = {
  name: 'rate',
  examples: '25Gbps or 800Mbps',
  units: {
    bps: 1,
    kbps: 1e3,
    mbps: 1e6,
    gbps: 1e9,
    tbps: 1e12,
    'b/s': 1,
    'kb/s': 1e3,
    'mb/s': 1e6,
    'gb/s': 1e9,
    'tb/s': 1e12,
  },
};

const DURATION: Quantity = {
  name: 'time',
  examples: '67us, 5ms, 2s, 10min, 8h or 7d',
  units: { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9, min: 60e9, h: 3600e9, d: 86_400e9 },
};

export function parseSizeBytes(text: string): number {
  return parseQuantity(text, SIZE);
}

/** The unit is required: whether `25` meant bits, megabits or bytes cannot be guessed. */
export function parseRateBps(text: string): number {
  return parseQuantity(text, RATE);
}

export function parseDurationNs(text: string): number {
  return parseQuantity(text, DURATION);
}

export function parseCount(text: string, min = 0, max: number = Number.MAX_SAFE_INTEGER): number {
  const value = /^(\d+|0x[0-9a-f]+)$/i.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  const range = max === Number.MAX_SAFE_INTEGER ? `from ${min} up` : `from ${min} to ${max}`;
  const code = Number.isNaN(value) ? 'ERR_ROCE_MALFORMED' : 'ERR_ROCE_OUT_OF_RANGE';
  throw new RoceError(code, `'${text}' is not a whole number ${range}`, `write a whole number ${range}`);
}

function parseQuantity(text: string, { name, examples, units }: Quantity): number {
  const match = /^(\d+(?:\.\d+)?)\s*([a-zµ/]*)$/i.exec(text.trim());
  const scale = match === null ? undefined : units[match[2].toLowerCase()];
  const value = match === null || scale === undefined ? Number.NaN : Math.round(Number(match[1]) * scale);
  if (!Number.isSafeInteger(value)) {
    throw new RoceError('ERR_ROCE_MALFORMED', `'${text}' is not a ${name}`, `write for example ${examples}`);
  }
  return value;
}

const BINARY_STEPS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
const RATE_STEPS = ['b/s', 'kb/s', 'Mb/s', 'Gb/s', 'Tb/s'];
const TIME_STEPS = ['ns', 'us', 'ms', 's'];

export function formatBytes(bytes: number): string {
  return format(bytes, 1024, BINARY_STEPS);
}

export function formatRate(bitsPerSecond: number): string {
  return format(bitsPerSecond, 1000, RATE_STEPS);
}

export function formatNs(ns: number): string {
  return format(ns, 1000, TIME_STEPS);
}

function format(value: number, step: number, names: readonly string[]): string {
  let scaled = value;
  let unit = 0;
  // Half a unit of the last printed digit below the step already rounds up to it: 999.7 ns is 1.00 us.
  while (unit < names.length - 1 && Math.abs(scaled) >= step - 0.5) {
    scaled /= step;
    unit++;
  }
  const whole = Number.isInteger(scaled) && (step === 1024 || unit === 0);
  return `${whole ? scaled : threeDigits(scaled)} ${names[unit]}`;
}

function threeDigits(value: number): string {
  const magnitude = Math.abs(value);
  if (magnitude >= 99.95) return value.toFixed(0);
  if (magnitude >= 9.995) return value.toFixed(1);
  return value.toFixed(2);
}
