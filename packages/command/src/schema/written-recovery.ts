import { type RecoveryOptions, recoverySettings } from 'rocev2/internal/retransmit';
import { readParameters } from './written-parameters.js';

export function readRecovery(name: string, written: Readonly<Record<string, unknown>>): RecoveryOptions {
  const parameters = readParameters(written);
  const options = (Object.keys(parameters).length === 0 ? name : { name, ...parameters }) as RecoveryOptions;
  recoverySettings(options);
  return options;
}
