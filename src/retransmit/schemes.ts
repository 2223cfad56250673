/** The recovery schemes by name and number. The number crosses the command ring and the connection exchange. */

import { RoceError } from '../core/errors.js';
import { GoBack0Receiver, GoBack0Sender } from './go-back-0.js';
import { GoBackNReceiver, GoBackNSender } from './go-back-n.js';
import { RECOVERY_NAMES, type ReceiverRecovery, type RecoveryName, type SenderRecovery } from './recovery.js';
import { SelectiveRepeatReceiver, SelectiveRepeatSender } from './selective-repeat.js';

const SCHEMES: Record<RecoveryName, { sender: () => SenderRecovery; receiver: () => ReceiverRecovery }> = {
  'go-back-n': { sender: () => new GoBackNSender(), receiver: () => new GoBackNReceiver() },
  'go-back-0': { sender: () => new GoBack0Sender(), receiver: () => new GoBack0Receiver() },
  'selective-repeat': { sender: () => new SelectiveRepeatSender(), receiver: () => new SelectiveRepeatReceiver() },
};

export function createSender(name: RecoveryName): SenderRecovery {
  return SCHEMES[name].sender();
}

export function createReceiver(name: RecoveryName): ReceiverRecovery {
  return SCHEMES[name].receiver();
}

/** Throws ERR_ROCE_UNKNOWN_NAME for a number that names no scheme. */
export function recoveryNameOf(number: number): RecoveryName {
  const name = RECOVERY_NAMES[number];
  if (name === undefined) throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `there is no recovery scheme number ${number}`);
  return name;
}

/** Throws ERR_ROCE_UNKNOWN_NAME for a name that is none. */
export function recoveryNumberOf(name: RecoveryName): number {
  const number = RECOVERY_NAMES.indexOf(name);
  if (number >= 0) return number;
  throw new RoceError(
    'ERR_ROCE_UNKNOWN_NAME',
    `'${name}' is no recovery scheme`,
    `give one of ${RECOVERY_NAMES.join(', ')}`,
  );
}
