/** The first four bytes of our files: `Sv`, and two letters that identify the format version. */

import { RoceError } from 'rocev2/internal/core';

export function otherMark(bytes: Buffer, own: string): string | undefined {
  const mark = bytes.toString('latin1', 0, 4);
  return /^Sv[A-Z\d]{2}$/.test(mark) && mark !== own ? mark : undefined;
}

/** Files of another version are neither read nor deleted. */
export function otherVersion(what: string, mark: string): RoceError {
  const hint = 'use the version of rocev2 that wrote it; nothing has been changed';
  return new RoceError('ERR_ROCE_MISMATCH', `${what} has the format '${mark}' of another version of rocev2`, hint);
}
