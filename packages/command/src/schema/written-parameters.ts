import { parseDurationNs, parseRateBps, parseSizeBytes, RoceError } from 'rocev2/internal/core';

export function readParameters(written: Readonly<Record<string, unknown>>): Record<string, number> {
  return Object.fromEntries(Object.entries(written).map(([key, value]) => [key, readNumber(key, value)]));
}

function readNumber(key: string, value: unknown): number {
  if (typeof value === 'number') return value;
  if (typeof value === 'string') {
    if (key.endsWith('Ns')) return parseDurationNs(value);
    if (key.endsWith('Bps')) return parseRateBps(value);
    if (key.endsWith('Bytes')) return parseSizeBytes(value);
    const number = value.trim() === '' ? Number.NaN : Number(value);
    if (Number.isFinite(number)) return number;
  }
  throw new RoceError('ERR_ROCE_MALFORMED', `${key} is not a number`);
}
