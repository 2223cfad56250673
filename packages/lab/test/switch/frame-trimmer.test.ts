/** What a switch makes of a data packet that finds its queue full, and of those that it must not touch. */

import { describe, expect, it } from 'vitest';
import { readEcn } from '../../../../src/packet/ecn.js';
import { FrameInfo, parseFrame } from '../../../../src/packet/frame.js';
import { icrcOfIpPacket } from '../../../../src/packet/icrc.js';
import { BTH_MULTIPATH, BTH_TRAILER } from '../../../../src/packet/int-trailer.js';
import { isIpv4ChecksumGood } from '../../../../src/packet/ipv4.js';
import {
  RC_ACK,
  RC_ATOMIC_ACK,
  RC_READ_REQUEST,
  RC_READ_RESPONSE_FIRST,
  RC_READ_RESPONSE_MIDDLE,
  RC_READ_RESPONSE_ONLY,
  VENDOR_TRIM_NAK,
  VENDOR_TRIMMED,
} from '../../../../src/packet/opcode.js';
import { PARSE_OK, parseRoce, RocePacket } from '../../../../src/packet/roce.js';
import { FrameTrimmer } from '../../src/switch/frame-trimmer.js';
import { A, B, roceFrame } from './traffic.js';

const PSN = 0x123456;

/** A frame of 1,000 bytes and more from A to B, of a connection with several ways. */
function dataFrame(
  family: 4 | 6,
  change: (bth: Uint8Array) => void = () => {},
): { bytes: Uint8Array; info: FrameInfo } {
  const bytes = roceFrame(A, B, {
    psn: PSN,
    ipId: 7,
    ecn: 2,
    sourcePort: 0xc123,
    family,
    frameBytes: family === 4 ? 1054 : 1074,
  });
  const info = new FrameInfo();
  parseFrame(bytes, 0, bytes.length, info);
  const bth = bytes.subarray(info.payloadOffset);
  bth[4] |= BTH_MULTIPATH;
  change(bth);
  return { bytes, info };
}

describe.each([4, 6] as const)('a cut packet over IPv%i', (family) => {
  const { bytes, info } = dataFrame(family, (bth) => (bth[4] |= BTH_TRAILER));
  const length = new FrameTrimmer({}).cut(bytes, bytes.length, info.ipOffset);
  const cut = bytes.subarray(0, length);

  it('is a BTH with its PSN and queue pair, sealed, and says that it was cut', () => {
    const packet = new RocePacket();
    expect(parseRoce(cut, info.payloadOffset, length - info.payloadOffset, packet)).toBe(PARSE_OK);
    expect(packet).toMatchObject({ opcode: VENDOR_TRIMMED, psn: PSN, payloadBytes: 0, resv6: BTH_MULTIPATH });
    const { computed, carried } = icrcOfIpPacket(cut.subarray(info.ipOffset));
    expect(carried).toBe(computed);
  });

  it('has lengths and checksums of its own, the priority of control packets, and the same addresses, port and mark', () => {
    const after = new FrameInfo();
    parseFrame(cut, 0, length, after);
    expect(after).toMatchObject({ udpOffset: info.udpOffset, payloadBytes: 16 });
    const ip = info.ipOffset;
    const dscp = family === 4 ? cut[ip + 1] >> 2 : ((cut[ip] & 15) << 2) | (cut[ip + 1] >> 6);
    expect(dscp).toBe(48);
    expect(readEcn(cut, ip)).toBe(2);
    if (family === 4) expect(isIpv4ChecksumGood(cut, ip)).toBe(true);
    const same = roceFrame(A, B, { family, sourcePort: 0xc123 });
    const [addresses, ports] = family === 4 ? [[12, 20], 20] : [[8, 40], 40];
    expect(cut.subarray(ip + addresses[0], ip + addresses[1])).toEqual(
      same.subarray(ip + addresses[0], ip + addresses[1]),
    );
    expect(cut.subarray(ip + ports, ip + ports + 4)).toEqual(same.subarray(ip + ports, ip + ports + 4));
  });

  it('is not cut again', () => {
    expect(new FrameTrimmer({}).cut(bytes, length, info.ipOffset)).toBe(0);
  });
});

describe('a READ response that is cut', () => {
  it.each([RC_READ_RESPONSE_FIRST, RC_READ_RESPONSE_MIDDLE, RC_READ_RESPONSE_ONLY])(
    'opcode %i asks who reads to ask again',
    (opcode) => {
      const { bytes, info } = dataFrame(4, (bth) => (bth[0] = opcode));
      const length = new FrameTrimmer({}).cut(bytes, bytes.length, info.ipOffset);
      const packet = new RocePacket();
      expect(parseRoce(bytes, info.payloadOffset, length - info.payloadOffset, packet)).toBe(PARSE_OK);
      expect(packet).toMatchObject({ opcode: VENDOR_TRIM_NAK, psn: PSN, payloadBytes: 0 });
    },
  );
});

describe('what is not cut, and stays as it was', () => {
  const refused: Record<string, (bth: Uint8Array) => void> = {
    'a packet of a connection that does not say it has several ways': (bth) => (bth[4] &= ~BTH_MULTIPATH),
    'an acknowledgement': (bth) => (bth[0] = RC_ACK),
    'the answer to an atomic': (bth) => (bth[0] = RC_ATOMIC_ACK),
    'a READ request': (bth) => (bth[0] = RC_READ_REQUEST),
    'an opcode that is none': (bth) => (bth[0] = 0xff),
  };
  it.each(Object.keys(refused))('%s', (name) => {
    const { bytes, info } = dataFrame(4, refused[name]);
    const before = bytes.slice();
    expect(new FrameTrimmer({}).cut(bytes, bytes.length, info.ipOffset)).toBe(0);
    expect(bytes).toEqual(before);
  });

  it('anything, without a configuration', () => {
    const { bytes, info } = dataFrame(4);
    expect(new FrameTrimmer(undefined).cut(bytes, bytes.length, info.ipOffset)).toBe(0);
    expect(new FrameTrimmer({}).cut(bytes, bytes.length, 0)).toBe(0);
  });

  it('and a priority that is none is refused', () => {
    expect(() => new FrameTrimmer({ priority: 8 })).toThrow(expect.objectContaining({ code: 'ERR_ROCE_OUT_OF_RANGE' }));
  });
});
