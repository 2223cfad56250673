/** Errors that cross from the server to the caller. */

import { RoceError } from '../core/errors.js';

/** Codes that the library itself gives; methods may give others. */
export const RPC_CODES = [
  /** The server has no such method. */
  'UNKNOWN_METHOD',
  /** A value does not fit its schema. */
  'INVALID',
  /** The caller's `timeoutMs` was over when the method ended. */
  'TIMEOUT',
  /** The caller gave up. */
  'CANCELLED',
  /** The method threw something that was not meant for callers. */
  'INTERNAL',
  /** A value is larger than the caller takes. */
  'TOO_LARGE',
] as const;

/**
 * A method failed. A handler throws it with a code of its own, and the caller gets one with the same `remoteCode` and message. The `code` is always
 * `ERR_ROCE_REMOTE`.
 */
export class RpcError extends RoceError {
  /** What failed, for programs: one of {@link RPC_CODES}, or a code of the method. */
  readonly remoteCode: string;

  /** `remoteCode` is at most 64 characters, `message` at most 1024; more is cut off on the wire. */
  constructor(remoteCode: string, message: string) {
    super('ERR_ROCE_REMOTE', message);
    this.remoteCode = remoteCode;
  }
}
