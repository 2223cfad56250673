import { namesHint, RoceError } from 'rocev2/internal/core';
import {
  DCQCN_PRESETS,
  type DcqcnPresetName,
  type RateControlOptions,
  rateControlSettings,
} from 'rocev2/internal/dcqcn';
import { readParameters } from './written-parameters.js';

export function readRateControl(name: string, written: Readonly<Record<string, unknown>>): RateControlOptions {
  const { preset, ...parameters } = written;
  const base = preset === undefined ? {} : presetNamed(name, preset).parameters;
  const options = { name, ...base, ...readParameters(parameters) } as RateControlOptions;
  rateControlSettings(options);
  return options;
}

function presetNamed(scheme: string, preset: unknown) {
  if (scheme === 'dcqcn' && typeof preset === 'string' && Object.hasOwn(DCQCN_PRESETS, preset)) {
    return DCQCN_PRESETS[preset as DcqcnPresetName];
  }
  throw new RoceError(
    'ERR_ROCE_UNKNOWN_NAME',
    `there is no preset ${preset} of ${scheme}`,
    scheme === 'dcqcn' ? namesHint(preset, Object.keys(DCQCN_PRESETS), 'there are') : 'only dcqcn has presets',
  );
}
