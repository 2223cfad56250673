import { describe, expect, it } from 'vitest';
import { IpAddress } from '../../../../src/packet/address.js';
import { FRAME_OK, FrameInfo, parseFrame } from '../../../../src/packet/frame.js';
import { checkIcrc, ICRC_BAD, ICRC_OK, IcrcFlow, sealIcrc } from '../../../../src/packet/icrc.js';
import { UD_SEND_ONLY } from '../../../../src/packet/opcode.js';
import { emitRoce } from '../../../../src/packet/roce.js';
import { type Port, type PortCounters, type RxDatagram, TxBatch } from '../../../../src/port/datagram.js';
import { Relay } from '../../src/wire/relay.js';

const [RELAY, HOST, CLIENT, THIRD] = ['10.0.0.9', '10.0.0.2', '10.0.0.1', '10.0.0.3'].map((text) =>
  IpAddress.parse(text),
);
const UNKNOWN_ID = -1;

/** A socket in memory. */
class MemoryPort implements Port {
  readonly description = 'memory';
  readonly address = RELAY;
  readonly udpPort = 4791;
  readonly pathMtuMax = 4096;
  readonly fixedSourcePort = 4791;
  readonly ipIdPolicy = 'train';
  readonly receiveBudgetPackets = Number.POSITIVE_INFINITY;
  readonly counters: PortCounters = { txDatagrams: 0, rxDatagrams: 0, txErrors: 0 };
  readonly sent: Array<{
    readonly to: string;
    readonly bytes: Uint8Array;
    readonly ipId: number;
    readonly ecn: number;
  }> = [];
  onDatagram: (datagram: RxDatagram) => void = () => {};
  onPause = () => {};
  onError = () => {};
  async open(): Promise<void> {}
  async close(): Promise<void> {}

  beginBatch(): TxBatch {
    return new TxBatch(4, RELAY, 4);
  }

  sendBatch(batch: TxBatch): void {
    for (let slot = 0; slot < batch.count; slot++) {
      const [to, ipId, ecn] = [batch.destinations[slot].text, batch.ipIds[slot], batch.ecns[slot]];
      this.sent.push({ to, ipId, ecn, bytes: batch.payloadView(slot).slice() });
    }
  }
}

function sealed(body: Uint8Array, from: IpAddress, to: IpAddress, sourcePort = 0xc123, ipId = 0): Uint8Array {
  const bytes = new Uint8Array(body.length + 4);
  bytes.set(body);
  sealIcrc(new IcrcFlow(from, to, sourcePort, 4791), bytes, 0, bytes.length, ipId, undefined);
  return bytes;
}

/** A relay whose two sides are joined, as a switch without rules joins them. */
function joined() {
  const port = new MemoryPort();
  const relay = new Relay(port, HOST);
  const frames: Array<{ readonly side: 'client' | 'host'; readonly way: 'in' | 'out'; readonly bytes: Uint8Array }> =
    [];
  const sides = { client: relay.client, host: relay.host };
  for (const [side, other] of [
    ['client', 'host'],
    ['host', 'client'],
  ] as const) {
    sides[side].onFrame = (bytes, offset, length) => {
      const frame = bytes.slice(offset, offset + length);
      frames.push({ side, way: 'in', bytes: frame.slice() });
      sides[other].address(frame, 0, frame.length);
      frames.push({ side: other, way: 'out', bytes: frame.slice() });
      sides[other].send(frame);
    };
  }
  const receive = (bytes: Uint8Array, source: IpAddress, over: Partial<RxDatagram> = {}) => {
    const record = { source, sourcePort: 0xc123, destination: RELAY, destinationPort: 4791 };
    port.onDatagram({ bytes, offset: 0, length: bytes.length, ...record, ecn: 2, dscp: 26, ipId: UNKNOWN_ID, ...over });
    relay.flush();
  };
  return { port, relay, frames, receive };
}

const send = (psn: number) => emitRoce({ opcode: 4, destQpn: 0x11, psn, ackReq: true }, new Uint8Array(32));

describe('relay', () => {
  it('each side believes that the relay is the other one, and the ICRC is right', () => {
    const { port, receive } = joined();
    receive(sealed(send(1), CLIENT, RELAY), CLIENT);
    receive(sealed(send(2), HOST, RELAY, 0xd000), HOST, { sourcePort: 0xd000 });
    expect(port.sent.map(({ to, ecn }) => [to, ecn])).toEqual([
      [HOST.text, 2],
      [CLIENT.text, 2],
    ]);
    const [toHost, toClient] = port.sent;
    const icrc = (bytes: Uint8Array, to: IpAddress) =>
      checkIcrc(new IcrcFlow(RELAY, to, 4791, 4791), bytes, 0, bytes.length, 0);
    expect(icrc(toHost.bytes, HOST)).toBe(ICRC_OK);
    expect(icrc(toClient.bytes, CLIENT)).toBe(ICRC_OK);
    expect(toHost.bytes.slice(0, -4)).toEqual(send(1));
  });

  it('a packet that was damaged on the way stays damaged', () => {
    const { port, receive } = joined();
    const bytes = sealed(send(1), CLIENT, RELAY);
    bytes[20] ^= 1;
    receive(bytes, CLIENT);
    const [{ bytes: passed }] = port.sent;
    expect(checkIcrc(new IcrcFlow(RELAY, HOST, 4791, 4791), passed, 0, passed.length, 0)).toBe(ICRC_BAD);
  });

  it('understands any identification, and numbers what leaves by its place in the train', () => {
    const { port, relay, receive } = joined();
    relay.flush = () => {}; // what comes together leaves together
    for (const ipId of [7, 9]) receive(sealed(send(ipId), CLIENT, RELAY, 0xc123, ipId), CLIENT);
    Relay.prototype.flush.call(relay);
    expect(port.sent.map(({ ipId }) => ipId)).toEqual([0, 1]);
    for (const { bytes, ipId } of port.sent) {
      expect(checkIcrc(new IcrcFlow(RELAY, HOST, 4791, 4791), bytes, 0, bytes.length, ipId)).toBe(ICRC_OK);
    }
  });

  it('shows frames with the addresses of each side', () => {
    const { frames, receive } = joined();
    receive(sealed(send(1), CLIENT, RELAY, 0xc123, 5), CLIENT);
    const info = new FrameInfo();
    const seen = frames.map(({ side, way, bytes }) => {
      expect(parseFrame(bytes, 0, bytes.length, info)).toBe(FRAME_OK);
      const address = (at: number) => IpAddress.fromBytes(bytes.subarray(at, at + 4));
      const [source, destination] = [address(info.sourceOffset), address(info.destinationOffset)];
      const flow = new IcrcFlow(source, destination, info.sourcePort, info.destinationPort);
      expect(checkIcrc(flow, bytes, info.payloadOffset, info.payloadBytes, info.ipId)).toBe(ICRC_OK);
      return [side, way, source.text, destination.text, info.sourcePort, info.ipId, info.ecn, info.dscp];
    });
    expect(seen).toEqual([
      ['client', 'in', CLIENT.text, RELAY.text, 0xc123, 5, 2, 26],
      ['host', 'out', RELAY.text, HOST.text, 4791, 0, 2, 26],
    ]);
  });

  it('puts the addresses of the next side into a REQ of RDMA CM, and into nothing else', () => {
    const { port, receive } = joined();
    const mad = new Uint8Array(256);
    mad.set([1, 7, 2, 3]);
    mad[17] = 0x10;
    const places = [24 + 56, 24 + 72, 24 + 144, 24 + 160];
    for (const [i, at] of places.entries()) mad.set((i % 2 === 0 ? CLIENT : RELAY).gid, at);
    const request = (attribute: number) => {
      mad[17] = attribute;
      return sealed(emitRoce({ opcode: UD_SEND_ONLY, destQpn: 1, qkey: 0x80010000, sourceQpn: 1 }, mad), CLIENT, RELAY);
    };
    receive(request(0x10), CLIENT);
    receive(request(0x13), CLIENT);
    const addresses = port.sent.map(({ bytes }) =>
      places.map((at) => IpAddress.fromBytes(bytes.slice(20 + at, 36 + at)).text),
    );
    expect(addresses).toEqual([
      [RELAY.text, HOST.text, RELAY.text, HOST.text],
      [CLIENT.text, RELAY.text, CLIENT.text, RELAY.text],
    ]);
  });

  it('serves one client, and drops what third parties send', () => {
    const { port, relay, receive } = joined();
    receive(sealed(send(1), CLIENT, RELAY), CLIENT);
    receive(sealed(send(2), THIRD, RELAY), THIRD);
    expect(port.sent.length).toBe(1);
    expect(relay.unknownPeers).toBe(1);
  });

  it('has nobody to send to before the client has spoken', () => {
    const { port, relay, receive } = joined();
    receive(sealed(send(1), HOST, RELAY), HOST);
    expect(port.sent).toEqual([]);
    expect(relay.client.errors).toBe(1);
  });
});
