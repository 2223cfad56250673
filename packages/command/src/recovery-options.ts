import type { Command } from 'commander';
import { type RecoveryName, type RecoveryOptions, recoveryNames, STANDARD_RECOVERY } from 'rocev2/internal/retransmit';
import { addNetworkOptions } from './help-format.js';
import { alternatives, choiceOption } from './options.js';
import { parameterPairs } from './parameter-pairs.js';
import { readRecovery } from './schema/written-recovery.js';

export interface RecoveryFlags {
  readonly recovery: RecoveryName;
  readonly recoveryParams?: string;
}

export function addRecoveryOptions(command: Command): Command {
  const names = recoveryNames();
  return addNetworkOptions(command, (group) =>
    group
      .option(
        '--recovery <scheme>',
        `loss recovery, the same on both sides: ${alternatives(names)}`,
        choiceOption(names),
        STANDARD_RECOVERY,
      )
      .option('--recovery-params <k=v,...>', 'parameters of the scheme (docs/recovery.md)'),
  );
}

export function recoveryOf({ recovery, recoveryParams }: RecoveryFlags): RecoveryOptions {
  return readRecovery(recovery, recoveryParams === undefined ? {} : parameterPairs(recoveryParams));
}
