import type { Command } from 'commander';
import {
  DCQCN_PRESETS,
  type RateControlName,
  type RateControlOptions,
  rateControlNames,
  rateControls,
} from 'rocev2/internal/dcqcn';
import { addNetworkOptions } from '../help-format.js';
import { alternatives, choiceOption, rateOption } from '../options.js';
import { parameterPairs } from '../parameter-pairs.js';
import { readRateControl } from '../schema/written-rate-control.js';

const UNCONTROLLED = 'none';
const CONSTANT = 'fixed';

export interface RateControlFlags {
  readonly cc: RateControlName;
  readonly rate?: number;
  readonly ccParams?: string;
}

export function addRateControlOptions(command: Command): Command {
  const names = rateControlNames();
  return addNetworkOptions(command, (group) =>
    group
      .option(
        '--cc <control>',
        `rate control of the data sender: ${alternatives(names)}`,
        choiceOption(names),
        UNCONTROLLED,
      )
      .option(
        '--rate <rate>',
        'constant rate with --cc none; otherwise the line rate (default: 10Gbps); whole frames count',
        rateOption,
      )
      .option(
        '--cc-params <k=v,...>',
        `parameters of the rate control (docs/congestion-control.md); dcqcn: preset=NAME, one of ${alternatives(Object.keys(DCQCN_PRESETS))}`,
      ),
  );
}

export function rateControlOf({ cc, rate, ccParams }: RateControlFlags): RateControlOptions {
  const written = ccParams === undefined ? {} : parameterPairs(ccParams);
  if (rate === undefined) return readRateControl(cc, written);
  const name = cc === UNCONTROLLED ? CONSTANT : cc;
  const key = 'rateBps' in rateControls.get(name).parameters ? 'rateBps' : 'linkRateBps';
  return readRateControl(name, { [key]: rate, ...written });
}
