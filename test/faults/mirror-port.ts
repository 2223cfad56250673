import { IpAddress } from '../../src/packet/address.js';
import { type IpIdPolicy, type Port, type PortCounters, type RxDatagram, TxBatch } from '../../src/port/datagram.js';

const ADDRESS = IpAddress.parse('127.0.0.1');

/** A port in memory: what it sends arrives at its own `onDatagram`. */
export class MirrorPort implements Port {
  readonly description = 'mirror';
  readonly address = ADDRESS;
  readonly udpPort = 4791;
  readonly pathMtuMax = 4096;
  readonly fixedSourcePort = undefined;
  readonly receiveBudgetPackets = Number.POSITIVE_INFINITY;
  readonly counters: PortCounters = { txDatagrams: 0, rxDatagrams: 0, txErrors: 0 };
  readonly ipIdPolicy: IpIdPolicy;
  onDatagram: (datagram: RxDatagram) => void = () => {};
  onPause: (priority: number, durationNs: number) => void = () => {};
  onError: (error: Error) => void = () => {};
  /** Batches not handed out; fewer than two leave no room to rebuild. */
  readonly free: TxBatch[];

  constructor(ipIdPolicy: IpIdPolicy = 'zero', batches = 3) {
    this.ipIdPolicy = ipIdPolicy;
    this.free = Array.from({ length: batches }, () => new TxBatch(8, ADDRESS, ipIdPolicy === 'train' ? 8 : 1));
  }

  async open(): Promise<void> {}
  async close(): Promise<void> {}

  beginBatch(): TxBatch | undefined {
    const batch = this.free.pop();
    if (batch !== undefined) batch.count = 0;
    return batch;
  }

  sendBatch(batch: TxBatch): void {
    for (let slot = 0; slot < batch.count; slot++) {
      this.counters.txDatagrams++;
      this.onDatagram({
        bytes: batch.slab,
        offset: batch.payloadOffset(slot),
        length: batch.lengths[slot],
        source: batch.sources[slot],
        sourcePort: batch.sourcePorts[slot],
        destination: batch.destinations[slot],
        destinationPort: batch.destinationPorts[slot],
        ecn: batch.ecns[slot],
        dscp: batch.dscps[slot],
        ipId: batch.ipIds[slot],
      });
    }
    this.free.push(batch);
  }
}
