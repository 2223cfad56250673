/**
 * One connection carries one queue. Failing is final: a connection reports it once, by `onFailure`, and from then on
 * neither sends nor reports anything. `close` may be called at any time; when it resolves, the connection no longer
 * accesses memory.
 */

import type { DataBuffer } from 'rocev2/internal/storage-rpc';
import type { TlsNames } from './auth/tls-key.js';
import type { Completion, NvmeCommand } from './capsule.js';
import type { DataPlace, ExternalSgl } from './sgl.js';

/** Transport of a queue. */
export type NvmeTransport = 'rdma' | 'tcp';

export interface IncomingCapsule {
  readonly command: NvmeCommand;
  readonly data: Uint8Array;
  readonly isDamaged: boolean;
  /** Safe to call twice. */
  release(): void;
}

export interface TargetConnection {
  readonly transport: NvmeTransport;
  readonly remote: string;
  readonly qid: number | undefined;
  readonly proven?: TlsNames | undefined;
  readonly depthMax: number;
  readonly external: ExternalSgl;
  onCapsule: (capsule: IncomingCapsule) => void;
  onFailure: (error: Error) => void;
  /** Rejects when the connection has ended. */
  buffer(bytes: number): DataBuffer | Promise<DataBuffer>;
  /** Rejects when the connection can no longer access `into`. */
  pull(command: NvmeCommand, place: DataPlace, into: DataBuffer): Promise<void>;
  /**
   * The key that `place` names is not touched after the answer. Resolves when the memory is free again, also when the
   * connection fails.
   */
  reply(reply: TargetReply): Promise<void>;
  fail(error: Error): void;
  close(): Promise<void>;
}

export interface TargetReply {
  readonly place: DataPlace;
  readonly completion: Completion;
  readonly data: DataBuffer | undefined;
}
