import { checkKind, type OptionNames } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import { WAIT_OPTIONS, type WaitOptions } from '../core/wait.js';
import type { IpAddress } from '../packet/address.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import type { CmConnection } from './cm-connection.js';
import { PRIVATE_DATA_BYTES } from './messages.js';
import type { IncomingRequest } from './passive-side.js';
import { type CmConnectionOptions, pathMtuBytes } from './qp-parameters.js';

/** Connection parameters of the passive side. */
export interface CmAcceptOptions extends CmConnectionOptions, WaitOptions {
  /**
   * PSN that this side expects first, 0..0xffffff; default: random and unpredictable. Meant for tests near the wrap.
   */
  readonly startingPsn?: number | undefined;
}

export const CM_ACCEPT_OPTIONS: OptionNames<CmAcceptOptions> = {
  ...WAIT_OPTIONS,
  privateData: true,
  responderResources: true,
  initiatorDepth: true,
  rnrRetryCount: true,
  minRnrTimer: true,
  startingPsn: true,
};

export interface RequestDecision {
  isPending(): boolean;
  /** As {@link CmRequest.isValidated}. */
  isValidated(): boolean;
  accept(qp: QueuePair, options: CmAcceptOptions): Promise<CmConnection>;
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
  /** 56 bytes, padded with zeros. */
  readonly privateData: Uint8Array;
  /** In bytes; the peer decides. */
  readonly pathMtu: number;
  /** READs and atomics that the peer answers at a time. */
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
   * The peer's address is validated: it has answered on an earlier connection. A first request may have a spoofed
   * source address.
   */
  get isValidated(): boolean {
    return this.#decision.isValidated();
  }

  /** False after `accept` or `reject`, and if the request was dropped: the peer gave up, or a limit was reached. */
  get isPending(): boolean {
    return this.#decision.isPending();
  }

  /**
   * Connects `qp`, which is in RESET or INIT (`initializeQp`), where receives may be posted already. Resolves when the
   * peer is ready. Rejects with ERR_ROCE_CONNECT when the peer has withdrawn, was silent for the `halfOpenMs` of the
   * manager, or was evicted while silent. Rejects with ERR_ROCE_ABORTED or ERR_ROCE_TIMEOUT as the options say; the
   * peer is then notified. Accept requests concurrently: if a program awaits each before the next, a silent peer delays
   * the others.
   */
  accept(qp: QueuePair, options: CmAcceptOptions = {}): Promise<CmConnection> {
    return this.#decision.accept(qp, options);
  }

  /**
   * Rejects the request; `privateData`, at most 148 bytes, may carry the reason. No effect if the peer has given up.
   */
  reject(privateData: Uint8Array = new Uint8Array(0)): void {
    checkPrivateData(privateData, PRIVATE_DATA_BYTES.REJ);
    if (this.isPending) this.#decision.reject(privateData);
  }

  /** Drops the request without an answer. @internal */
  evict(): void {
    this.#decision.evict();
  }
}

export function checkPrivateData(data: Uint8Array, maxBytes: number): void {
  checkKind('privateData', data, data instanceof Uint8Array, 'a Buffer or Uint8Array');
  if (data.length <= maxBytes) return;
  throw new RoceError(
    'ERR_ROCE_OUT_OF_RANGE',
    `${data.length} bytes of private data are too many`,
    `at most ${maxBytes} fit`,
  );
}
