import type { IpAddress } from '../packet/address.js';
import type { QueuePair } from '../verbs/queue-pair.js';

/** One end of a connection that RDMA CM made. */
export class CmConnection implements AsyncDisposable {
  /** In RTS. It is the caller's, to close when the connection has ended. */
  readonly qp: QueuePair;
  /** IP address of the peer. */
  readonly remote: IpAddress;
  /** Private data of the peer: 56 bytes of its request, or 196 of its acceptance, padded with zeros. */
  readonly privateData: Uint8Array;
  /** In bytes. */
  readonly pathMtu: number;
  /** READs and atomics this side may have outstanding. */
  readonly maxRdAtomic: number;
  /**
   * Resolves when either side has ended the connection; the QP is then in ERR and its work is flushed. Never rejects.
   */
  readonly disconnected: Promise<void>;
  readonly #requestEnd: () => void;

  /** @internal */
  constructor(init: {
    qp: QueuePair;
    remote: IpAddress;
    privateData: Uint8Array;
    pathMtu: number;
    maxRdAtomic: number;
    disconnected: Promise<void>;
    requestEnd: () => void;
  }) {
    this.qp = init.qp;
    this.remote = init.remote;
    this.privateData = init.privateData;
    this.pathMtu = init.pathMtu;
    this.maxRdAtomic = init.maxRdAtomic;
    this.disconnected = init.disconnected;
    this.#requestEnd = init.requestEnd;
  }

  /**
   * Ends the connection (`rdma_disconnect`). Resolves when the peer has agreed, or has not answered in time. Everything
   * that the peer sent before is acknowledged first. No effect on a connection that has ended.
   */
  async disconnect(): Promise<void> {
    await this.qp.settle();
    this.#requestEnd();
    await this.disconnected;
  }

  /** The same as {@link disconnect}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.disconnect();
  }
}
