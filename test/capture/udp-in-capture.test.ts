import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { icrcOfIpPacket } from '../../src/packet/icrc.js';
import { CaptureReader } from '../../src/port/capture/capture-reader.js';
import { decodeRoce } from '../../src/port/capture/decoded-packet.js';
import { LINKTYPE_ETHERNET, LINKTYPE_RAW } from '../../src/port/capture/pcapng-blocks.js';
import { udpOf } from '../../src/port/capture/udp-in-capture.js';

const [first] = new CaptureReader(readFileSync('test/golden/send-rc-mtu1024-v4.pcapng'));
const [firstV6] = new CaptureReader(readFileSync('test/golden/send-rc-mtu1024-v6.pcapng'));
const FRAME = first.bytes;
const PLACE = { number: 1, timeNs: 0, interfaceId: 0 };

function udp(bytes: Uint8Array, linkType: number = LINKTYPE_ETHERNET) {
  const packet = { timestampNs: 0n, interfaceId: 0, originalLength: bytes.length, comment: undefined };
  return udpOf({ ...packet, linkType, bytes });
}

/** The IPv6 packet with destination options and a fragment header of a whole packet, and a correct ICRC. */
function withExtensions(ip: Uint8Array): Uint8Array {
  const options = [44, 1, 1, 12, ...new Array(12).fill(0)];
  const fragment = [17, 0, 0, 0, 0, 0, 0, 9];
  const bytes = Uint8Array.of(...ip.subarray(0, 40), ...options, ...fragment, ...ip.subarray(40));
  bytes[6] = 60;
  bytes[5] += 24;
  const { computed } = icrcOfIpPacket(bytes, 64);
  new DataView(bytes.buffer).setUint32(bytes.length - 4, computed, true);
  return bytes;
}

/** The frame with bytes put in behind the MAC addresses. */
function tagged(...tag: number[]): Uint8Array {
  return Uint8Array.of(...FRAME.subarray(0, 12), ...tag, ...FRAME.subarray(12));
}

describe('the datagram in a captured packet', () => {
  it('is the same behind Ethernet, behind one or two tags, with frame padding, and in RAW IP', () => {
    const plain = udp(FRAME)!;
    expect(plain).toMatchObject({ destinationPort: 4791, payloadBytes: 16 });
    expect([plain.source.text, plain.destination.text]).toEqual(['10.77.0.2', '10.77.0.3']);
    expect(udp(tagged(0x81, 0, 0x60, 5))).toEqual(plain);
    for (const outer of [0x88a8, 0x9100, 0x9200, 0x9300]) {
      expect(udp(tagged(outer >> 8, outer & 0xff, 0, 7, 0x81, 0, 0x60, 5))).toEqual(plain);
    }
    expect(udp(Uint8Array.of(...FRAME, 0, 0, 0))).toEqual(plain);
    expect(udp(FRAME.subarray(14), LINKTYPE_RAW)).toEqual(plain);
    expect(udp(firstV6.bytes.subarray(14), LINKTYPE_RAW)).toEqual(udp(firstV6.bytes));
  });

  it('is the same in Linux cooked captures with and without a tag, and behind the loopback header of BSD', () => {
    const plain = udp(FRAME)!;
    const ip = FRAME.subarray(14);
    const cooked = (...protocol: number[]) => Uint8Array.of(...new Uint8Array(14), ...protocol, ...ip);
    expect(udp(cooked(8, 0), 113)).toEqual(plain);
    expect(udp(cooked(0x81, 0, 0x60, 5, 8, 0), 113)).toEqual(plain);
    const cooked2 = (protocol: number[], ...tag: number[]) =>
      Uint8Array.of(...protocol, ...new Uint8Array(18), ...tag, ...ip);
    expect(udp(cooked2([8, 0]), 276)).toEqual(plain);
    expect(udp(cooked2([0x81, 0], 0x60, 5, 8, 0), 276)).toEqual(plain);
    expect(udp(Uint8Array.of(2, 0, 0, 0, ...ip), 0)).toEqual(plain);
    expect(udp(Uint8Array.of(0, 0, 0, 2, ...ip), 108)).toEqual(plain);
  });

  it('is found behind IPv6 extension headers, with an ICRC that covers them', () => {
    const bytes = withExtensions(firstV6.bytes.subarray(14));
    const datagram = udp(bytes, LINKTYPE_RAW)!;
    expect(datagram).toMatchObject({ destinationPort: 4791, payloadBytes: 16, udpOffset: 40 + 16 + 8 });
    expect(decodeRoce(datagram, PLACE, true)).toMatchObject({ icrc: 'ok', bth: { destQpn: expect.any(Number) } });
    bytes[44] ^= 1;
    expect(decodeRoce(udp(bytes, LINKTYPE_RAW)!, PLACE, true).icrc).toBe('bad');
  });

  it.each([
    ['ARP', 12, [0x08, 0x06]],
    ['TCP', 23, [6]],
    ['a later fragment', 20, [0x20, 7]],
    ['an IP version that does not exist', 14, [0x55]],
    ['an IPv4 header shorter than 20 bytes', 14, [0x44]],
  ])('%s is not one', (_, at, bytes) => {
    const frame = Uint8Array.from(FRAME);
    frame.set(bytes, at);
    expect(udp(frame)).toBeUndefined();
  });

  it.each([
    ['fragment', 20, [0x20, 0, 64, 17, 0, 0, 10, 77, 0, 2, 10, 77, 0, 3, 0, 0, 0x12, 0xb7, 0x10]],
    ['lengths_differ', 38, [0xff, 0xff]],
  ])('one that is malformed is shown as such: %s', (malformed, at, bytes) => {
    const frame = Uint8Array.from(FRAME);
    frame.set(bytes, at);
    expect(decodeRoce(udp(frame)!, PLACE, true)).toMatchObject({ malformed, icrc: 'unchecked' });
  });

  it('an unknown link type is not one', () => expect(udp(FRAME, 147)).toBeUndefined());

  it('cut anywhere, it never throws, and says that it was cut once the headers are there', () => {
    const whole = decodeRoce(udp(FRAME)!, PLACE, true);
    expect(whole.icrc).toBe('ok');
    for (let length = 0; length < FRAME.length; length++) {
      const datagram = udp(FRAME.subarray(0, length));
      const packet = datagram && decodeRoce(datagram, PLACE, true);
      if (length < 42) expect(packet).toBeUndefined();
      else if (length < 54) expect(packet).toMatchObject({ icrc: 'cut', malformed: expect.any(String) });
      else expect(packet).toEqual({ ...whole, icrc: 'cut' });
    }
  });
});
