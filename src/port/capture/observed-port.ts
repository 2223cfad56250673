import type { Port, RxDatagram, TxBatch } from '../datagram.js';
import { PortWrapper } from '../port-wrapper.js';

export const SENT = 0;
export const RECEIVED = 1;
export type PacketDirection = typeof SENT | typeof RECEIVED;

export interface PacketObserver {
  /** `ipId` is IP_ID_UNKNOWN where the port cannot see it. Received datagrams may have any content. */
  packet(
    direction: PacketDirection,
    bytes: Uint8Array,
    offset: number,
    length: number,
    ipId: number,
    ecn: number,
  ): void;
}

export class ObservedPort extends PortWrapper {
  readonly #observer: PacketObserver;

  constructor(inner: Port, observer: PacketObserver) {
    super(inner);
    this.#observer = observer;
  }

  override get description(): string {
    return `${this.inner.description}, observed`;
  }

  override sendBatch(batch: TxBatch): void {
    const { slab, lengths, ipIds, ecns } = batch;
    for (let slot = 0; slot < batch.count; slot++) {
      this.#observer.packet(SENT, slab, batch.payloadOffset(slot), lengths[slot], ipIds[slot], ecns[slot]);
    }
    this.inner.sendBatch(batch);
  }

  protected override receive(datagram: RxDatagram): void {
    const { bytes, offset, length, ipId, ecn } = datagram;
    this.#observer.packet(RECEIVED, bytes, offset, length, ipId, ecn);
    this.onDatagram(datagram);
  }
}
