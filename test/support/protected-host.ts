/** Simulated hosts whose packets are protected: the stage of `src/secure` between their NICs and the link, with keys that follow from a seed. */

import type { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import type { SimHost } from '../../packages/lab/src/sim/sim-host.js';
import { chooseCipher } from '../../src/driver/cipher/cipher-choice.js';
import type { AssociationTerms, ProtectionMode } from '../../src/memory/ring/protection.js';
import { copySlot } from '../../src/port/append-slot.js';
import { type Port, type PortCounters, type RxDatagram, TxBatch } from '../../src/port/datagram.js';
import type { RekeyLimits } from '../../src/port/secure/association.js';
import type { CipherMaker } from '../../src/port/secure/packet-cipher.js';
import { SecurePort } from '../../src/port/secure/secure-port.js';

/** What a simulated host has of its link, as a port. */
class LinkPort implements Port {
  readonly description = 'simulated link';
  readonly address;
  readonly udpPort = 4791;
  readonly pathMtuMax = 4096;
  readonly ipIdPolicy = 'sequential';
  readonly fixedSourcePort = undefined;
  readonly counters: PortCounters = { txDatagrams: 0, rxDatagrams: 0, txErrors: 0 };
  readonly receiveBudgetPackets = Number.POSITIVE_INFINITY;
  onDatagram: (datagram: RxDatagram) => void = () => {};
  onPause = () => {};
  onError = () => {};
  transmit: (batch: TxBatch) => number = () => 0;
  /** When the wire is free again. */
  freeAtNs = 0;

  constructor(host: SimHost) {
    this.address = host.address;
  }

  async open(): Promise<void> {}
  async close(): Promise<void> {}

  beginBatch(): TxBatch {
    return new TxBatch(1, this.address);
  }

  sendBatch(batch: TxBatch): void {
    if (batch.count > 0) this.freeAtNs = this.transmit(batch);
  }
}

export interface ProtectedOptions {
  readonly mode?: ProtectionMode;
  readonly makeCipher?: CipherMaker;
  readonly rekey?: RekeyLimits;
  /** Default: the simulation's. */
  readonly nowNs?: () => number;
}

/** Puts a secure port under the NIC of a host; before the host is connected to its link. */
export function protect(host: SimHost, events: EventQueue, options: ProtectedOptions = {}): SecurePort {
  const link = new LinkPort(host);
  const port = new SecurePort(link, {
    mode: options.mode ?? 'require',
    nowNs: options.nowNs ?? (() => events.nowNs),
    makeCipher: options.makeCipher ?? chooseCipher().make,
    ...(options.rekey !== undefined && { rekey: options.rekey }),
  });
  port.countInto(host.counters);
  const connect = host.connect.bind(host);
  const receive = host.receive.bind(host);
  port.onDatagram = receive;
  host.receive = (datagram) => link.onDatagram(datagram);
  host.connect = (transmit) => {
    link.transmit = transmit;
    connect((batch) => {
      link.freeAtNs = events.nowNs;
      const plain = port.beginBatch()!;
      copySlot(batch, 0, plain, 0);
      plain.count = 1;
      port.sendBatch(plain);
      return link.freeAtNs;
    });
  };
  return port;
}

const secret = (byte: number) => new Uint8Array(32).fill(byte);

/** Keys of both directions between two hosts, as each of them sees them; another `salt` makes others. */
export function termsBetween(a: string, b: string, salt = 0): readonly [AssociationTerms, AssociationTerms] {
  const [aToB, bToA] = [secret(2 * salt + 1), secret(2 * salt + 2)];
  const common = { peerUdpPort: 4791, hasFixedPort: false };
  return [
    {
      ...common,
      isInitiator: true,
      spi: 0xa00 + salt,
      remoteSpi: 0xb00 + salt,
      peer: b,
      sendSecret: aToB,
      receiveSecret: bToA,
    },
    {
      ...common,
      isInitiator: false,
      spi: 0xb00 + salt,
      remoteSpi: 0xa00 + salt,
      peer: a,
      sendSecret: bToA,
      receiveSecret: aToB,
    },
  ];
}

/** Makes and begins the associations of two ports. */
export async function associate(a: SecurePort, b: SecurePort, salt = 0): Promise<void> {
  const [ofA, ofB] = termsBetween(a.address.text, b.address.text, salt);
  await a.associate(ofA);
  await b.associate(ofB);
  a.begin(ofA.spi);
  b.begin(ofB.spi);
}
