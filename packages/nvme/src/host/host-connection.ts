/**
 * What a queue of a host needs of a connection, whichever transport it runs on. Failing is final: it is reported once, by `onFailure`, and from
 * then on nothing is sent or reported. When `close` resolves, the target reaches no memory through this connection any more.
 */

import type { Completion } from '../capsule.js';
import type { NvmeTransport } from '../target-connection.js';

/** A command on its way out. */
export interface HostCommand {
  /** Its 64 bytes, without the SGL; the connection writes that. Command IDs are below the depth of the queue. */
  readonly sqe: Buffer;
  /** Data for the target. It must not change until the command is answered. */
  readonly out?: Uint8Array;
  /** Memory for the data of the answer. */
  readonly into?: Uint8Array;
}

/** The host's end of a queue's connection. */
export interface HostConnection {
  /** Which transport this is. */
  readonly transport: NvmeTransport;
  /** Most bytes of data that may go in a capsule; 0 until the controller has said so. */
  inCapsuleBytes: number;
  /** Takes each completion; data for the host is in its memory by then. */
  onCompletion: (completion: Completion) => void;
  /** Called once, when the connection has failed or the target has gone. */
  onFailure: (error: Error) => void;
  /** Sends a command. Each command ID is used by one command at a time. */
  send(command: HostCommand): void;
  /** The connection is of no use any more, for a reason that its owner knows. */
  fail(error: Error): void;
  /** Ends the connection; commands stay unanswered. */
  close(): Promise<void>;
}
