import type { Command } from 'commander';
import { type RecoveryName, type RecoveryOptions, recoveryNames, STANDARD_RECOVERY } from 'rocev2/internal/retransmit';
import { choiceOption } from './options.js';
import { parameterPairs } from './parameter-pairs.js';
import { readRecovery } from './schema/written-recovery.js';

/** Values of the two options. */
export interface RecoveryFlags {
  /** The scheme; the same on both sides. */
  readonly recovery: RecoveryName;
  /** Its parameters, `k=v,...`. */
  readonly recoveryParams?: string;
}

/** Adds the options to a command with a reliable transport. The choices are the registered schemes. */
export function addRecoveryOptions(command: Command): Command {
  const names = recoveryNames();
  return command
    .option(
      '--recovery <scheme>',
      `${names.join(', ')}; must be the same on both sides`,
      choiceOption(names),
      STANDARD_RECOVERY,
    )
    .option('--recovery-params <k=v,...>', 'parameters of the scheme (docs/recovery.md)');
}

/** Throws ERR_ROCE_UNKNOWN_NAME for parameters that the scheme does not have, ERR_ROCE_OUT_OF_RANGE for a value. */
export function recoveryOf({ recovery, recoveryParams }: RecoveryFlags): RecoveryOptions {
  return readRecovery(recovery, recoveryParams === undefined ? {} : parameterPairs(recoveryParams));
}
