import { describe, expect, it } from 'vitest';
import { IpAddress } from '../../src/packet/address.js';
import { IcrcFlow, icrcOfIpPacket, sealIcrc } from '../../src/packet/icrc.js';
import { isIpv4ChecksumGood } from '../../src/packet/ipv4.js';
import { IPV6_BYTES } from '../../src/packet/ipv6.js';
import { RC_SEND_ONLY } from '../../src/packet/opcode.js';
import { emitRoce } from '../../src/packet/roce.js';
import { isUdpChecksumGoodV6 } from '../../src/packet/udp.js';
import { CapturePort } from '../../src/port/capture/capture-port.js';
import { LINKTYPE_RAW } from '../../src/port/capture/pcapng-blocks.js';
import { udpOf } from '../../src/port/capture/udp-in-capture.js';
import { ECN_CE, IP_ID_UNKNOWN, type Port, type RxDatagram, TxBatch } from '../../src/port/datagram.js';

const NOW = 1_790_000_000_000_000_000n;

/** A port that keeps what it is given and receives what the test says. */
class LoopPort implements Port {
  readonly description = 'loop';
  readonly address: IpAddress;
  readonly udpPort = 4791;
  readonly pathMtuMax = 4096;
  readonly ipIdPolicy = 'zero';
  readonly fixedSourcePort = 4791;
  readonly counters = { txDatagrams: 0, rxDatagrams: 0, txErrors: 0 };
  readonly receiveBudgetPackets = 100;
  readonly batch: TxBatch;
  sent = 0;
  onDatagram: (datagram: RxDatagram) => void = () => {};
  onPause: (priority: number, durationNs: number) => void = () => {};
  onError: (error: Error) => void = () => {};

  constructor(address: IpAddress) {
    this.address = address;
    this.batch = new TxBatch(4, address);
  }
  async open(): Promise<void> {}
  async close(): Promise<void> {}
  beginBatch(): TxBatch {
    return this.batch;
  }
  sendBatch(batch: TxBatch): void {
    this.sent += batch.count;
  }
}

interface Written {
  readonly timestampNs: bigint;
  readonly packet: Uint8Array;
  readonly comment: string | undefined;
}

function captured(address: string) {
  const written: Written[] = [];
  const inner = new LoopPort(IpAddress.parse(address));
  const sink = {
    writePacket: (_id: number, timestampNs: bigint, packet: Uint8Array, comment?: string) => {
      written.push({ timestampNs, packet: packet.slice(), comment });
      return true;
    },
  };
  return { written, inner, port: new CapturePort(inner, sink, 0, () => NOW) };
}

/** A sealed SEND of `payload` from one address to the other. */
function sealed(from: IpAddress, to: IpAddress, ipId: number, payload: Uint8Array): Uint8Array {
  const packet = emitRoce({ opcode: RC_SEND_ONLY, destQpn: 0x11, psn: 0x123456, ackReq: true }, payload);
  const bytes = new Uint8Array(packet.length + 4);
  bytes.set(packet);
  sealIcrc(new IcrcFlow(from, to, 4791, 4791), bytes, 0, bytes.length, ipId, undefined);
  return bytes;
}

function udpIn({ packet }: Written) {
  const whole = { timestampNs: 0n, interfaceId: 0, linkType: LINKTYPE_RAW, originalLength: packet.length };
  return udpOf({ ...whole, bytes: packet, comment: undefined })!;
}

/** Over IPv6 zero is no checksum that Wireshark takes without a remark. */
function hasUdpChecksumV6(packet: Uint8Array): boolean {
  const isZero = packet[IPV6_BYTES + 6] === 0 && packet[IPV6_BYTES + 7] === 0;
  return !isZero && isUdpChecksumGoodV6(packet, 0, IPV6_BYTES);
}

const PAYLOAD = Uint8Array.from({ length: 1000 }, (_, i) => i);

describe.each([
  ['IPv4', '127.0.0.1', '127.0.0.2'],
  ['IPv6', 'fd77::1', 'fd77::2'],
])('a captured port over %s', (_, here, there) => {
  const [local, remote] = [IpAddress.parse(here), IpAddress.parse(there)];

  function received(bytes: Uint8Array, ipId: number): RxDatagram {
    const ports = { sourcePort: 4791, destinationPort: 4791 };
    const range = { bytes, offset: 0, length: bytes.length };
    return { ...range, ...ports, source: remote, destination: local, ecn: ECN_CE, dscp: 26, ipId };
  }

  it('writes what is sent, with headers whose ICRC and checksum verify, and still sends it', () => {
    const { port, inner, written } = captured(here);
    const batch = port.beginBatch()!;
    const bytes = sealed(local, remote, 0x77, PAYLOAD);
    batch.count = 2;
    for (const slot of [0, 1]) {
      batch.lengths[slot] = bytes.length;
      batch.ipIds[slot] = 0x77;
      batch.sourcePorts[slot] = 4791;
      batch.destinationPorts[slot] = 4791;
      batch.dscps[slot] = 26;
      batch.ecns[slot] = 2;
      batch.sources[slot] = local;
      batch.destinations[slot] = remote;
      batch.slab.set(bytes, batch.payloadOffset(slot));
    }
    port.sendBatch(batch);
    expect(inner.sent).toBe(2);
    expect(written).toHaveLength(2);
    for (const [slot, entry] of written.entries()) {
      const datagram = udpIn(entry);
      expect(datagram).toMatchObject({ sourcePort: 4791, destinationPort: 4791, ecn: 2 });
      expect([datagram.source.text, datagram.destination.text]).toEqual([here, there]);
      expect(datagram.payload).toEqual(bytes);
      const { computed, carried } = icrcOfIpPacket(entry.packet);
      expect(computed).toBe(carried);
      expect(local.family === 4 ? isIpv4ChecksumGood(entry.packet, 0) : hasUdpChecksumV6(entry.packet)).toBe(true);
      expect(entry.comment).toBe(slot === 0 ? undefined : 'sent again');
      expect(entry.timestampNs).toBe(NOW);
    }
  });

  it('writes what is received, and hands it on unchanged', () => {
    const { port, inner, written } = captured(here);
    const handed: Uint8Array[] = [];
    port.onDatagram = (datagram) => handed.push(datagram.bytes.slice());
    const bytes = sealed(remote, local, 0, PAYLOAD);
    inner.onDatagram(received(Uint8Array.from(bytes), IP_ID_UNKNOWN));
    expect(handed).toEqual([bytes]);
    const { computed, carried } = icrcOfIpPacket(written[0].packet);
    expect(computed).toBe(carried);
    expect(udpIn(written[0])).toMatchObject({ ecn: ECN_CE, payload: bytes });
    if (local.family === 6) expect(hasUdpChecksumV6(written[0].packet)).toBe(true);
    expect(written[0].comment).toBe('marked on its way: congestion experienced');
  });
});

describe('an IPv4 identification that the socket hides', () => {
  const [local, remote] = [IpAddress.parse('127.0.0.1'), IpAddress.parse('127.0.0.2')];
  const receive = (bytes: Uint8Array, ipId: number) => {
    const { inner, written } = captured('127.0.0.1');
    const where = { source: remote, sourcePort: 4791, destination: local, destinationPort: 4791 };
    inner.onDatagram({ bytes, offset: 0, length: bytes.length, ...where, ecn: 0, dscp: 0, ipId });
    return written[0];
  };

  it('is computed from the ICRC, and a comment says so', () => {
    const { packet, comment } = receive(sealed(remote, local, 0xbeef, PAYLOAD), IP_ID_UNKNOWN);
    expect([packet[4], packet[5]]).toEqual([0xbe, 0xef]);
    const { computed, carried } = icrcOfIpPacket(packet);
    expect(computed).toBe(carried);
    expect(comment).toMatch(/computed from the ICRC/);
  });

  it('is left zero when no value makes the ICRC right, and a comment says that', () => {
    const bytes = sealed(remote, local, 0xbeef, PAYLOAD);
    bytes[500] ^= 0x10;
    const { packet, comment } = receive(bytes, IP_ID_UNKNOWN);
    expect([packet[4], packet[5]]).toEqual([0, 0]);
    expect(comment).toMatch(/ICRC is wrong for every value/);
  });

  it('is taken as it is when the port knows it', () => {
    const { packet, comment } = receive(sealed(remote, local, 0xbeef, PAYLOAD), 0xbeef);
    expect([packet[4], packet[5]]).toEqual([0xbe, 0xef]);
    expect(comment).toBeUndefined();
  });

  it('does not stop the capture of a datagram that is no RoCE at all, however long', () => {
    const { packet } = receive(new Uint8Array(65_507), IP_ID_UNKNOWN);
    expect(packet.length).toBe(65_535);
    expect(receive(new Uint8Array(0), IP_ID_UNKNOWN).packet.length).toBe(28);
  });
});
