import { describe, expect, it } from 'vitest';
import {
  completeFrame,
  FRAME_OF_DATAGRAMS,
  FRAME_OF_SEGMENTS,
  FRAME_WHOLE,
  splitDatagrams,
  VNET_HEADER_BYTES,
} from '../../src/dgram-ext/offloads.js';
import {
  ETHERTYPE_IPV4,
  ETHERTYPE_IPV6,
  parseMac,
  writeEthernet,
  writeEthernetTagged,
} from '../../src/packet/ethernet.js';
import { FRAME_OK, FrameInfo, parseFrame } from '../../src/packet/frame.js';
import { IP_PROTOCOL_UDP, writeIpv4 } from '../../src/packet/ipv4.js';
import { writeIpv6 } from '../../src/packet/ipv6.js';
import { isUdpChecksumGoodV6, UDP_BYTES, writeUdp } from '../../src/packet/udp.js';

const [TO, FROM] = ['02:00:00:00:00:01', '02:00:00:00:00:02'].map(parseMac);
const V4 = [Uint8Array.of(10, 0, 0, 1), Uint8Array.of(10, 0, 0, 2)] as const;
const V6 = [new Uint8Array(16).fill(1), new Uint8Array(16).fill(2)] as const;

interface Shape {
  readonly family?: 4 | 6;
  readonly tagged?: boolean;
  readonly payloadBytes: number;
  readonly ipId?: number;
}

/** A frame behind a `struct virtio_net_hdr` of zeros. */
function framed({ family = 4, tagged = false, payloadBytes, ipId = 0 }: Shape): Uint8Array {
  const bytes = new Uint8Array(VNET_HEADER_BYTES + 18 + 40 + 8 + payloadBytes);
  const ethertype = family === 4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6;
  const frame = VNET_HEADER_BYTES;
  let end = tagged
    ? writeEthernetTagged(bytes, frame, TO, FROM, 3, 0, ethertype)
    : writeEthernet(bytes, frame, TO, FROM, ethertype);
  const udpBytes = UDP_BYTES + payloadBytes;
  end =
    family === 4
      ? writeIpv4(bytes, end, ...V4, IP_PROTOCOL_UDP, 2, 64, ipId, udpBytes)
      : writeIpv6(bytes, end, ...V6, IP_PROTOCOL_UDP, 2, 0, 64, udpBytes);
  end = writeUdp(bytes, end, 0xc000, 4791, payloadBytes);
  for (let i = 0; i < payloadBytes; i++) bytes[end + i] = i * 7 + (i >> 8);
  return bytes.slice(0, end + payloadBytes);
}

/** `struct virtio_net_hdr` of a train. */
function asTrain(bytes: Uint8Array, segmentBytes: number): Uint8Array {
  bytes[0] = 1;
  bytes[1] = 5;
  new DataView(bytes.buffer).setUint16(4, segmentBytes, true);
  return bytes;
}

function split(bytes: Uint8Array): Uint8Array[] {
  const frames: Uint8Array[] = [];
  splitDatagrams(bytes, 0, VNET_HEADER_BYTES, bytes.length - VNET_HEADER_BYTES, (frame, length) => {
    frames.push(bytes.slice(frame, frame + length));
  });
  return frames;
}

describe('trains of datagrams', () => {
  // ACKs of 20 bytes and READ requests of 32 are shorter than the headers that are written in front of them.
  it.each([20, 32, 44, 1040, 4112])('of %i bytes are cut as the kernel cuts them', (segmentBytes) => {
    for (const family of [4, 6] as const) {
      for (const tagged of [false, true]) {
        const total = 3 * segmentBytes + 8;
        const whole = framed({ family, tagged, payloadBytes: total, ipId: 0xfffe });
        const payload = whole.slice(-total);
        const train = asTrain(whole, segmentBytes);
        expect(completeFrame(train, 0, VNET_HEADER_BYTES, train.length - VNET_HEADER_BYTES)).toBe(FRAME_OF_DATAGRAMS);
        const frames = split(train);
        expect(frames.length).toBe(4);
        const info = new FrameInfo();
        const parts = frames.map((frame, index) => {
          expect(parseFrame(frame, 0, frame.length, info)).toBe(FRAME_OK);
          expect(info).toMatchObject({ sourcePort: 0xc000, destinationPort: 4791, ecn: 2, vlanId: tagged ? 0 : -1 });
          if (family === 4) expect(info.ipId).toBe((0xfffe + index) & 0xffff);
          else expect(isUdpChecksumGoodV6(frame, info.ipOffset, info.udpOffset)).toBe(true);
          return frame.slice(info.payloadOffset, info.payloadOffset + info.payloadBytes);
        });
        expect(parts.map(({ length }) => length)).toEqual([segmentBytes, segmentBytes, segmentBytes, 8]);
        expect(Buffer.concat(parts).equals(payload)).toBe(true);
      }
    }
  });

  it('of nothing are nothing', () => {
    expect(split(asTrain(framed({ payloadBytes: 0 }), 100))).toEqual([]);
    expect(split(asTrain(framed({ payloadBytes: 100 }), 0))).toEqual([]);
  });
});

describe('frames with a checksum to be made', () => {
  it('of UDP over IPv4 do without, over IPv6 get it', () => {
    for (const [family, udp] of [
      [4, 34],
      [6, 54],
    ] as const) {
      const bytes = framed({ family, payloadBytes: 101 });
      const view = new DataView(bytes.buffer);
      bytes[0] = 1;
      view.setUint16(6, udp, true);
      view.setUint16(8, 6, true);
      // What the kernel leaves there: the sum of the pseudo-header, not complemented.
      let sum = 17 + 109;
      for (let i = 0; i < 32; i += 2) sum += (V6[i >> 4][i & 15] << 8) | V6[i >> 4][(i & 15) + 1];
      while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
      view.setUint16(VNET_HEADER_BYTES + udp + 6, sum);
      expect(completeFrame(bytes, 0, VNET_HEADER_BYTES, bytes.length - VNET_HEADER_BYTES)).toBe(FRAME_WHOLE);
      const checksum = view.getUint16(VNET_HEADER_BYTES + udp + 6);
      if (family === 4) expect(checksum).toBe(0);
      else {
        expect(checksum).not.toBe(0);
        expect(isUdpChecksumGoodV6(bytes, VNET_HEADER_BYTES + 14, VNET_HEADER_BYTES + udp)).toBe(true);
      }
    }
  });

  it('are left alone where the field would be outside, and so are all others', () => {
    const bytes = framed({ payloadBytes: 4 });
    const before = bytes.slice();
    expect(completeFrame(bytes, 0, VNET_HEADER_BYTES, bytes.length - VNET_HEADER_BYTES)).toBe(FRAME_WHOLE);
    expect(bytes).toEqual(before);
    bytes[0] = 1;
    new DataView(bytes.buffer).setUint16(6, 5000, true);
    expect(completeFrame(bytes, 0, VNET_HEADER_BYTES, bytes.length - VNET_HEADER_BYTES)).toBe(FRAME_WHOLE);
    expect(bytes.slice(VNET_HEADER_BYTES)).toEqual(before.slice(VNET_HEADER_BYTES));
  });

  it('of TCP in one piece are to be handed on', () => {
    const bytes = framed({ payloadBytes: 4 });
    for (const type of [1, 4, 0x81]) {
      bytes[1] = type;
      expect(completeFrame(bytes, 0, VNET_HEADER_BYTES, bytes.length - VNET_HEADER_BYTES)).toBe(FRAME_OF_SEGMENTS);
    }
  });
});
