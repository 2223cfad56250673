import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
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
    expect(udp(tagged(0x88, 0xa8, 0, 7, 0x81, 0, 0x60, 5))).toEqual(plain);
    expect(udp(Uint8Array.of(...FRAME, 0, 0, 0))).toEqual(plain);
    expect(udp(FRAME.subarray(14), LINKTYPE_RAW)).toEqual(plain);
    expect(udp(firstV6.bytes.subarray(14), LINKTYPE_RAW)).toEqual(udp(firstV6.bytes));
  });

  it.each([
    ['ARP', 12, [0x08, 0x06]],
    ['TCP', 23, [6]],
    ['a fragment', 20, [0x20, 0]],
    ['an IP version that does not exist', 14, [0x55]],
    ['an IPv4 header shorter than 20 bytes', 14, [0x44]],
    ['a UDP length that is not that of the IP packet', 38, [0xff, 0xff]],
  ])('%s is not one', (_, at, bytes) => {
    const frame = Uint8Array.from(FRAME);
    frame.set(bytes, at);
    expect(udp(frame)).toBeUndefined();
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
