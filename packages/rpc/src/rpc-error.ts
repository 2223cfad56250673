import { RoceError } from 'rocev2/internal/core';

/** Error codes of the library; methods may use others. */
export const RPC_CODES = ['UNKNOWN_METHOD', 'INVALID', 'TIMEOUT', 'CANCELLED', 'INTERNAL', 'TOO_LARGE'] as const;

/**
 * The error of a failed method. A handler throws it with its own code; the caller gets an error with the same
 * `remoteCode` and message. `code` is always
 * `ERR_ROCE_REMOTE`.
 */
export class RpcError extends RoceError {
  /** Error code: one of {@link RPC_CODES}, or a code of the method. */
  readonly remoteCode: string;

  /** `remoteCode` is at most 64 characters, `message` at most 1024; longer ones are cut. */
  constructor(remoteCode: string, message: string) {
    super('ERR_ROCE_REMOTE', message);
    this.remoteCode = remoteCode;
  }
}
