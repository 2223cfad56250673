/** A peer's wish to connect (`RDMA_CM_EVENT_CONNECT_REQUEST`), to be accepted or rejected. */

import type { OptionNames } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import { WAIT_OPTIONS, type WaitOptions } from '../core/wait.js';
import type { IpAddress } from '../packet/address.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import type { CmConnection } from './cm-connection.js';
import { PRIVATE_DATA_BYTES } from './messages.js';
import type { IncomingRequest } from './passive-side.js';
import { type CmConnectionOptions, pathMtuBytes } from './qp-parameters.js';

/** What the passive side says of a connection. */
export interface CmAcceptOptions extends CmConnectionOptions, WaitOptions {
  /** PSN that this side expects first, 0..0xffffff; default: a random one, which nobody can guess. For tests near the wrap. */
  readonly startingPsn?: number;
}

/** The names of {@link CmAcceptOptions}. */
export const CM_ACCEPT_OPTIONS: OptionNames<CmAcceptOptions> = {
  ...WAIT_OPTIONS,
  privateData: true,
  responderResources: true,
  initiatorDepth: true,
  rnrRetryCount: true,
  minRnrTimer: true,
  startingPsn: true,
};

/** What the connection manager does for a request. */
export interface RequestDecision {
  /** Whether the peer still waits for the decision. */
  isPending(): boolean;
  /** As {@link CmRequest.isValidated}. */
  isValidated(): boolean;
  /** As {@link CmRequest.accept}. */
  accept(qp: QueuePair, options: CmAcceptOptions): Promise<CmConnection>;
  /** As {@link CmRequest.reject}. */
  reject(privateData: Uint8Array): void;
  /** As {@link CmRequest.evict}. */
  evict(): void;
}

/** A request to connect; taken from a {@link CmListener}, then accepted or rejected once. */
export class CmRequest {
  /** IP address of the peer. */
  readonly remote: IpAddress;
  /** The peer's port, as TCP has one. */
  readonly remotePort: number;
  /** 56 bytes, zeros behind what the peer set. */
  readonly privateData: Uint8Array;
  /** In bytes; the peer decides. */
  readonly pathMtu: number;
  /** READs and atomics the peer answers, and wants to issue, at a time. */
  readonly responderResources: number;
  /** READs and atomics the peer wants to issue at a time. */
  readonly initiatorDepth: number;
  readonly #decision: RequestDecision;

  /** @internal */
  constructor(remote: IpAddress, { fields, endpoints, userData }: IncomingRequest, decision: RequestDecision) {
    this.remote = remote;
    this.remotePort = endpoints.sourcePort;
    this.privateData = userData;
    this.pathMtu = pathMtuBytes(fields.pathMtu);
    this.responderResources = fields.responderResources;
    this.initiatorDepth = fields.initiatorDepth;
    this.#decision = decision;
  }

  /**
   * The peer is known to receive at the address: it has answered on an earlier connection. A first request proves nothing; anybody who can write
   * a source address may have sent it.
   */
  get isValidated(): boolean {
    return this.#decision.isValidated();
  }

  /** False once it was accepted or rejected, the peer gave up, or others needed the room. */
  get isPending(): boolean {
    return this.#decision.isPending();
  }

  /**
   * Connects `qp`, which is in RESET or INIT (`initializeQp`), where receives may be posted already. Resolves when the peer is ready; rejects
   * with ERR_ROCE_CONNECT when it has changed its mind, was silent for the `halfOpenMs` of the manager, or was silent while others needed the
   * room; with ERR_ROCE_ABORTED or ERR_ROCE_TIMEOUT as the options say, and the peer is told. Any number of requests may be accepted side by side: whoever waits for one before taking the next lets a silent peer hold up the others.
   */
  accept(qp: QueuePair, options: CmAcceptOptions = {}): Promise<CmConnection> {
    return this.#decision.accept(qp, options);
  }

  /** Says no; `privateData`, at most 148 bytes, may say why. Harmless when the peer has given up. */
  reject(privateData: Uint8Array = new Uint8Array(0)): void {
    checkPrivateData(privateData, PRIVATE_DATA_BYTES.REJ);
    if (this.isPending) this.#decision.reject(privateData);
  }

  /** Drops the request without an answer. @internal */
  evict(): void {
    this.#decision.evict();
  }
}

/** Throws ERR_ROCE_OUT_OF_RANGE. */
export function checkPrivateData(data: Uint8Array, maxBytes: number): void {
  if (data.length <= maxBytes) return;
  throw new RoceError(
    'ERR_ROCE_OUT_OF_RANGE',
    `${data.length} bytes of private data are too many`,
    `at most ${maxBytes} fit`,
  );
}
