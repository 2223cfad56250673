/** `--cc`, `--rate` and `--cc-params`: the rate control of a transfer. */

import type { Command } from 'commander';
import { RoceError } from '../../core/errors.js';
import { DCQCN_PRESETS } from '../../dcqcn/presets.js';
import type { RateControlOptions } from '../../dcqcn/schemes.js';
import { readRateControl } from '../../schema/written-rate-control.js';
import { choiceOption, rateOption } from '../options.js';

const CONTROLS = ['none', 'dcqcn', 'timely', 'patched-timely'] as const;

/** The options in the program's units. */
export interface RateControlFlags {
  /** Which rate control. */
  readonly cc: (typeof CONTROLS)[number];
  /** Bits/s. */
  readonly rate?: number;
  /** Its parameters, `k=v,...`. */
  readonly ccParams?: string;
}

/** Adds the options to a command. */
export function addRateControlOptions(command: Command): Command {
  return command
    .option('--cc <control>', `rate control of the data sender: ${CONTROLS.join(', ')}`, choiceOption(CONTROLS), 'none')
    .option(
      '--rate <rate>',
      'with --cc none the rate to send at, else the line rate (10Gbps); frames on the link count',
      rateOption,
    )
    .option(
      '--cc-params <k=v,...>',
      `its parameters (docs/congestion-control.md); dcqcn: preset=NAME of ${Object.keys(DCQCN_PRESETS).join(', ')}`,
    );
}

/** Throws ERR_ROCE_UNKNOWN_NAME for parameters that the rate control does not have. */
export function rateControlOf({ cc, rate, ccParams }: RateControlFlags): RateControlOptions {
  const written = ccParams === undefined ? {} : pairs(ccParams);
  if (rate === undefined) return readRateControl(cc, written);
  if (cc === 'none') return readRateControl('fixed', { rateBps: rate, ...written });
  return readRateControl(cc, { linkRateBps: rate, ...written });
}

function pairs(text: string): Record<string, string> {
  return Object.fromEntries(
    text.split(',').map((pair) => {
      const [key, value, ...rest] = pair.split('=').map((part) => part.trim());
      if (key !== '' && value !== undefined && rest.length === 0) return [key, value];
      throw new RoceError('ERR_ROCE_MALFORMED', `'${pair}' is not parameter=value`);
    }),
  );
}
