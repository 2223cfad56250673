/** A target that refuses, as an error of a command: one line, and the exit code of a peer to which there is no connection. */

import { RoceError } from 'rocev2/internal/core';
import { NvmeStatusError } from '../status.js';

/** For `catch` of what connects to a target. Throws ERR_ROCE_CONNECT for a refusal by the target, and everything else as it is. */
export function failToConnect(error: unknown): never {
  if (error instanceof NvmeStatusError) {
    throw new RoceError('ERR_ROCE_CONNECT', error.message, undefined, { cause: error });
  }
  throw error;
}
