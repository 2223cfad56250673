/** Rate controls as people write them, in scenario files and on command lines: numbers with units, and presets by name. */

import { RoceError } from '../core/errors.js';
import { parseDurationNs, parseRateBps, parseSizeBytes } from '../core/units.js';
import { DCQCN_PRESETS, type DcqcnPresetName } from '../dcqcn/presets.js';
import { type RateControlName, type RateControlOptions, rateControlSettings } from '../dcqcn/schemes.js';

/**
 * The options that `written` means: parameters as numbers or text, and for DCQCN `preset`, which goes before them. Throws
 * ERR_ROCE_MALFORMED for what cannot be read, ERR_ROCE_OUT_OF_RANGE, or ERR_ROCE_UNKNOWN_NAME for what does not exist.
 */
export function readRateControl(name: RateControlName, written: Readonly<Record<string, unknown>>): RateControlOptions {
  const { preset, ...parameters } = written;
  const numbers = Object.entries(parameters).map(([key, value]) => [key, readNumber(key, value)]);
  const base = preset === undefined ? {} : presetNamed(name, preset).parameters;
  const options = { name, ...base, ...Object.fromEntries(numbers) } as RateControlOptions;
  rateControlSettings(options);
  return options;
}

function presetNamed(scheme: RateControlName, preset: unknown) {
  if (scheme === 'dcqcn' && typeof preset === 'string' && Object.hasOwn(DCQCN_PRESETS, preset)) {
    return DCQCN_PRESETS[preset as DcqcnPresetName];
  }
  throw new RoceError(
    'ERR_ROCE_UNKNOWN_NAME',
    `there is no preset ${preset} of ${scheme}`,
    `dcqcn has ${Object.keys(DCQCN_PRESETS).join(', ')}`,
  );
}

/** The end of a parameter's name says which units its text takes. */
function readNumber(key: string, value: unknown): number {
  if (typeof value === 'number') return value;
  if (typeof value === 'string') {
    if (key.endsWith('Ns')) return parseDurationNs(value);
    if (key.endsWith('Bps')) return parseRateBps(value);
    if (key.endsWith('Bytes')) return parseSizeBytes(value);
    const number = value.trim() === '' ? Number.NaN : Number(value);
    if (Number.isFinite(number)) return number;
  }
  throw new RoceError('ERR_ROCE_MALFORMED', `${key} is no number`);
}
