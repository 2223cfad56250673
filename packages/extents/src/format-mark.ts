/** The first four bytes of what is in our files: `Sv`, and two letters that another version of the format does not have. */

import { RoceError } from 'rocev2/internal/core';

/** The mark at the head of some bytes, if it is one of ours, but not `own`. Undefined: there is none, as where a write was torn. */
export function otherMark(bytes: Buffer, own: string): string | undefined {
  const mark = bytes.toString('latin1', 0, 4);
  return /^Sv[A-Z\d]{2}$/.test(mark) && mark !== own ? mark : undefined;
}

/** Files of another version are neither read nor deleted. `what`: which one it is. */
export function otherVersion(what: string, mark: string): RoceError {
  const hint = 'use the version of rocev2 that wrote it; nothing has been changed';
  return new RoceError('ERR_ROCE_MISMATCH', `${what} has the format '${mark}' of another version of rocev2`, hint);
}
