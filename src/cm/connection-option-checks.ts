/** Checks what a program passes, at the call: the first peer would be too late for a listener. */

import { constants } from 'node:buffer';
import { checkBoolean, checkKind, checkOneOf, checkWhole, ifGiven } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import { RING_DEPTH_MAX } from '../memory/ring/ring.js';
import { PATH_MTUS } from '../packet/path-mtu.js';
import type { RdmaDevice } from '../verbs/device.js';
import { checkSecureMode } from '../verbs/security.js';
import type { ConnectionOptions } from './connection-parts.js';

const TIMER_CODE_MAX = 31;
const RETRY_MAX = 7;
/** A message is one work request. */
const MESSAGE_BYTES_LIMIT = 2 ** 31;

/** Throws for an option that no peer could make possible. Those of the schemes are checked by their registries. */
export function checkConnectionOptions(
  device: RdmaDevice,
  options: ConnectionOptions,
  defaults: { readonly messageBytesMax: number; readonly receiveDepth: number },
): void {
  const { region, mtu, timeout, retryCnt, totalTimeout, manager, allowForeignGid, secure, allow } = options;
  const { messageBytesMax = defaults.messageBytesMax, receiveDepth = defaults.receiveDepth } = options;
  checkWhole('messageBytesMax', messageBytesMax, 1, MESSAGE_BYTES_LIMIT);
  checkWhole('receiveDepth', receiveDepth, 1, RING_DEPTH_MAX / 2); // The completion queue has twice as many elements.
  if (messageBytesMax * receiveDepth > constants.MAX_LENGTH) {
    const text = `messageBytesMax ${messageBytesMax} times receiveDepth ${receiveDepth} is more memory than a buffer holds`;
    throw new RoceError('ERR_ROCE_OUT_OF_RANGE', text, `at most ${constants.MAX_LENGTH} bytes`);
  }
  ifGiven(mtu, (value) => checkOneOf('mtu', value, PATH_MTUS));
  ifGiven(timeout, (value) => checkWhole('timeout', value, 0, TIMER_CODE_MAX));
  ifGiven(retryCnt, (value) => checkWhole('retryCnt', value, 0, RETRY_MAX));
  ifGiven(totalTimeout, (value) => checkWhole('totalTimeout', value, 0, TIMER_CODE_MAX));
  if (region !== undefined) checkRegion(device, region);
  if (manager !== undefined)
    checkKind('manager', manager, typeof manager?.listen === 'function', 'a ConnectionManager');
  ifGiven(allowForeignGid, (value) => checkBoolean('allowForeignGid', value));
  ifGiven(secure, (value) => checkSecureMode('secure', value));
  if (allow !== undefined) {
    const areNames = Array.isArray(allow) && allow.every((name) => typeof name === 'string');
    checkKind('allow', allow, areNames, 'a list of names');
  }
}

function checkRegion(device: RdmaDevice, region: Uint8Array | number): void {
  if (typeof region === 'number') {
    checkWhole('region', region, 0, constants.MAX_LENGTH);
    return;
  }
  checkKind('region', region, region instanceof Uint8Array, 'a Buffer, or a number of bytes');
  if (device.reaches(region)) return;
  throw new RoceError(
    'ERR_ROCE_UNSUPPORTED',
    'region: the NIC runs in a worker and cannot reach memory of this thread alone',
    'take memory from device.allocate(), or give a number of bytes',
  );
}
