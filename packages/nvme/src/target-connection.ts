/**
 * What a queue of a target needs of a connection, whichever transport it runs on. One connection carries one queue.
 *
 * Failing is final: a connection reports it once, by `onFailure`, and from then on neither sends nor reports anything. `close` may be called at
 * any time; when it resolves, nothing of the connection touches memory any more.
 */

import type { DataBuffer } from 'rocev2/internal/storage-rpc';
import type { TlsNames } from './auth/tls-key.js';
import type { Completion, NvmeCommand } from './capsule.js';
import type { DataPlace, ExternalSgl } from './sgl.js';

/** What carries a queue. */
export type NvmeTransport = 'rdma' | 'tcp';

/** A command capsule that came in. */
export interface IncomingCapsule {
  /** The command, in memory of its own. */
  readonly command: NvmeCommand;
  /** What came behind it; valid until `release`. */
  readonly data: Uint8Array;
  /** The data behind the command does not have the digest that came with it. */
  readonly isDamaged: boolean;
  /** The capsule is done with. Safe to call twice. */
  release(): void;
}

/** The target's end of a queue's connection. */
export interface TargetConnection {
  /** Which transport this is. */
  readonly transport: NvmeTransport;
  /** IP address of the host, for messages. */
  readonly remote: string;
  /** The queue that the set-up of the connection named; undefined where only Connect names it. */
  readonly qid: number | undefined;
  /** Who the host has proven to be, and whom it wants, by the key of TLS; undefined without TLS. */
  readonly proven?: TlsNames | undefined;
  /** Most commands the connection can hold at a time. */
  readonly depthMax: number;
  /** The kind of SGL for data outside the capsule. */
  readonly external: ExternalSgl;
  /** Takes each capsule, in the order of the connection. */
  onCapsule: (capsule: IncomingCapsule) => void;
  /** Called once, when the connection has failed or the host has gone. */
  onFailure: (error: Error) => void;
  /** Memory this connection can move data from and to, 1 byte to 1 MiB. */
  buffer(bytes: number): Promise<DataBuffer>;
  /** Fetches the data of a command to the start of `into`, all of `place.length`. Rejects when the connection can touch `into` no more. */
  pull(command: NvmeCommand, place: DataPlace, into: DataBuffer): Promise<void>;
  /**
   * Answers a command, behind its data: `data`, from `buffer`. The key that `place` names is not touched after the answer. Resolves when
   * the memory is free again, also when the connection fails.
   */
  reply(reply: TargetReply): Promise<void>;
  /** The connection is of no use any more, for a reason that its owner knows. */
  fail(error: Error): void;
  /** Ends the connection. */
  close(): Promise<void>;
}

/** An answer. */
export interface TargetReply {
  /** Where the host wants the data. */
  readonly place: DataPlace;
  /** Status and result. */
  readonly completion: Completion;
  /** Data for the host, as long as `place`. */
  readonly data: DataBuffer | undefined;
}
