import { checkKind } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import { ATOMIC_BYTES } from '../packet/roce.js';
import type { RemoteRegion } from './hello.js';

export interface RemoteTarget {
  readonly remoteAddr: bigint;
  readonly rkey: number;
}

export function targetIn(remote: RemoteRegion | undefined, offset: number, length: number): RemoteTarget {
  checkKind('offset', offset, typeof offset === 'number', 'a number of bytes; options are the argument after it');
  if (remote === undefined) {
    throw new RoceError(
      'ERR_ROCE_INVALID_STATE',
      'the peer has not opened any memory',
      'it must pass `region` to listen or connect',
    );
  }
  const isRange = Number.isInteger(offset) && Number.isInteger(length) && offset >= 0 && length >= 0;
  if (!isRange || length > remote.length - offset) {
    throw new RoceError(
      'ERR_ROCE_OUT_OF_RANGE',
      `[${offset}, ${offset} + ${length}) is not inside the peer's region of ${remote.length} bytes`,
    );
  }
  return { remoteAddr: remote.addr + BigInt(offset), rkey: remote.rkey };
}

/**
 * Throws as {@link targetIn}, and for an address that is not a multiple of 8, for which the peer would end the
 * connection.
 */
export function atomicTargetIn(remote: RemoteRegion | undefined, offset: number): RemoteTarget {
  const target = targetIn(remote, offset, ATOMIC_BYTES);
  if (target.remoteAddr % BigInt(ATOMIC_BYTES) === 0n) return target;
  throw new RoceError(
    'ERR_ROCE_OUT_OF_RANGE',
    `an atomic operation at offset ${offset}, which is address 0x${target.remoteAddr.toString(16)} of the peer`,
    'the address must be a multiple of 8',
  );
}
