import { type RecoveryOptions, recoverySettings } from 'rocev2/internal/retransmit';
import { readParameters } from './written-parameters.js';

/**
 * The options that `written` means: the name alone where there are no parameters. Throws ERR_ROCE_MALFORMED for what
 * cannot be read, ERR_ROCE_OUT_OF_RANGE, or ERR_ROCE_UNKNOWN_NAME for what does not exist.
 */
export function readRecovery(name: string, written: Readonly<Record<string, unknown>>): RecoveryOptions {
  const parameters = readParameters(written);
  const options = (Object.keys(parameters).length === 0 ? name : { name, ...parameters }) as RecoveryOptions;
  recoverySettings(options);
  return options;
}
