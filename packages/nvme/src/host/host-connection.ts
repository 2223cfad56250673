/**
 * Failing is final: it is reported once, by `onFailure`, and from then on nothing is sent or reported. When `close`
 * resolves, the target can no longer access memory through this connection.
 */

import type { Completion } from '../capsule.js';
import type { NvmeTransport } from '../target-connection.js';

export interface HostCommand {
  /** Command IDs are below the depth of the queue. */
  readonly sqe: Buffer;
  /** It must not change until the command is answered. */
  readonly out?: Uint8Array;
  readonly into?: Uint8Array;
}

export interface HostConnection {
  readonly transport: NvmeTransport;
  inCapsuleBytes: number;
  onCompletion: (completion: Completion) => void;
  onFailure: (error: Error) => void;
  /** Each command ID is used by one command at a time. */
  send(command: HostCommand): void;
  fail(error: Error): void;
  close(): Promise<void>;
}
