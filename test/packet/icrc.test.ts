import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { equalBytes, toHex } from '../../src/core/bytes.js';
import { crc32, javaScriptCrc32, useCrc32 } from '../../src/core/crc32.js';
import { zlibCrc32 } from '../../src/core/node-crc32.js';
import { type RandomSource, randomInt, SeededRandom } from '../../src/core/random.js';
import { IpAddress } from '../../src/packet/address.js';
import {
  checkIcrc,
  ICRC_BAD,
  ICRC_OK,
  ICRC_OK_ID_SOLVED,
  IcrcFlow,
  IP_ID_UNKNOWN,
  icrcOfIpPacket,
  renumberIcrc,
  sealIcrc,
  TRAIN_PACKETS_MAX,
  trainHolds,
} from '../../src/packet/icrc.js';
import { naiveIcrc, naiveIpPacket } from '../support/naive-codec.js';

const A4 = IpAddress.parse('192.0.2.1');
const B4 = IpAddress.parse('192.0.2.2');

const bytesOf = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const addresses = fc.constantFrom(4, 16).chain((bytes) => fc.tuple(bytesOf(bytes), bytesOf(bytes)));
const port = fc.integer({ min: 0, max: 0xffff });

describe('IcrcFlow', () => {
  test('prefix and seal equal the naive sum for any addresses, ports, length and identification', () => {
    fc.assert(
      fc.property(
        addresses,
        port,
        port,
        port,
        fc.uint8Array({ minLength: 16, maxLength: 600 }),
        (ips, s, d, id, udp) => {
          const [source, destination] = ips.map((bytes) => IpAddress.fromBytes(bytes));
          const flow = new IcrcFlow(source, destination, s, d);
          const ipPacket = naiveIpPacket(source.bytes, destination.bytes, s, d, id, udp);
          const expected = naiveIcrc(ipPacket.subarray(0, -4));
          const before = toHex(udp.subarray(0, -4));
          sealIcrc(flow, udp, 0, udp.length, id, undefined);
          const last = udp.subarray(-4);
          expect((last[0] | (last[1] << 8) | (last[2] << 16) | (last[3] << 24)) >>> 0).toBe(expected);
          expect(toHex(udp.subarray(0, -4))).toBe(before);
          expect(checkIcrc(flow, udp, 0, udp.length, id)).toBe(ICRC_OK);
          expect(toHex(udp.subarray(0, -4))).toBe(before);
          ipPacket.set(udp, ipPacket.length - udp.length);
          expect(icrcOfIpPacket(ipPacket)).toEqual({ computed: expected, carried: expected });
        },
      ),
    );
  });

  test('the prefix is right for every length class up to the largest datagram', () => {
    const flow = new IcrcFlow(A4, B4, 0xc000, 4791);
    for (const length of [16, 199, 200, 227, 228, 255, 256, 4124, 4252, 9000, 65507]) {
      const ipPacket = naiveIpPacket(A4.bytes, B4.bytes, 0xc000, 4791, 0xbeef, new Uint8Array(length));
      // naiveIcrc masks BTH byte 4, so let the prefix be continued over bytes masked the same way.
      const rest = new Uint8Array(length);
      rest[4] = 0xff;
      expect(crc32(rest, flow.prefix(length, 0xbeef))).toBe(naiveIcrc(ipPacket));
    }
  });

  test('addresses of two families are a caller mistake', () => {
    expect(() => new IcrcFlow(A4, IpAddress.parse('::1'), 1, 2)).toThrow(/address family/);
  });
});

function randomPacket(random: RandomSource, flow: IcrcFlow, ipId: number, maxWords: number): Uint8Array {
  const bytes = new Uint8Array(4 * randomInt(random, 4, maxWords));
  for (let i = 0; i < bytes.length; i++) bytes[i] = random.u32();
  sealIcrc(flow, bytes, 0, bytes.length, ipId, undefined);
  return bytes;
}

describe('a hidden identification', () => {
  const flow = new IcrcFlow(A4, B4, 0xc123, 4791);

  test('is found for 10,000 random packets, and for each of all 65,536 values', () => {
    const random = new SeededRandom(2).stream('solve');
    for (let i = 0; i < 10_000; i++) {
      const id = randomInt(random, 1, 0xffff);
      const bytes = randomPacket(random, flow, id, 80);
      expect(checkIcrc(flow, bytes, 0, bytes.length, IP_ID_UNKNOWN)).toBe(ICRC_OK_ID_SOLVED);
      expect(flow.solvedId).toBe(id);
    }
    const bytes = randomPacket(random, flow, 0, 8);
    expect(checkIcrc(flow, bytes, 0, bytes.length, IP_ID_UNKNOWN)).toBe(ICRC_OK);
    let wrong = 0;
    for (let id = 1; id <= 0xffff; id++) {
      sealIcrc(flow, bytes, 0, bytes.length, id, undefined);
      const result = checkIcrc(flow, bytes, 0, bytes.length, IP_ID_UNKNOWN);
      if (result !== ICRC_OK_ID_SOLVED || flow.solvedId !== id) wrong++;
    }
    expect(wrong).toBe(0);
  });

  test('is found behind a payload longer than any path MTU', () => {
    const bytes = new Uint8Array(9000).fill(0x5a);
    sealIcrc(flow, bytes, 0, bytes.length, 0x4321, undefined);
    expect(checkIcrc(flow, bytes, 0, bytes.length, IP_ID_UNKNOWN)).toBe(ICRC_OK_ID_SOLVED);
    expect(flow.solvedId).toBe(0x4321);
  });

  test('does not hide damage: of 10,000 packets with a burst of random bytes at most 3 pass', () => {
    const random = new SeededRandom(3).stream('damage');
    let passed = 0;
    for (let i = 0; i < 10_000; i++) {
      const bytes = randomPacket(random, flow, randomInt(random, 0, 0xffff), 60);
      const at = randomInt(random, 5, bytes.length - 4);
      for (let k = 0; k < 4; k++) bytes[at + k] ^= random.u32() | 1;
      if (checkIcrc(flow, bytes, 0, bytes.length, IP_ID_UNKNOWN) !== ICRC_BAD) passed++;
    }
    // 16 bits of check: one in 65,536 passes.
    expect(passed).toBeLessThanOrEqual(3);
  });

  test('does not hide a single flipped bit of 10,000, except the masked ones', () => {
    const random = new SeededRandom(4).stream('bits');
    for (let i = 0; i < 10_000; i++) {
      const bytes = randomPacket(random, flow, randomInt(random, 1, 0xffff), 60);
      const bit = randomInt(random, 0, bytes.length * 8 - 1);
      bytes[bit >> 3] ^= 1 << (bit & 7);
      const expected = bit >> 3 === 4 ? ICRC_OK_ID_SOLVED : ICRC_BAD;
      expect(checkIcrc(flow, bytes, 0, bytes.length, IP_ID_UNKNOWN)).toBe(expected);
    }
  });

  test('does not make up for a changed flag or fragment offset, which stand right behind it', () => {
    const udp = new Uint8Array(32).fill(9);
    for (let bit = 0; bit < 16; bit++) {
      const ipPacket = naiveIpPacket(A4.bytes, B4.bytes, 0xc123, 4791, 0x1234, udp);
      ipPacket[6 + (bit >> 3)] ^= 1 << (bit & 7);
      new DataView(udp.buffer).setUint32(28, naiveIcrc(ipPacket.subarray(0, -4)), true);
      expect(checkIcrc(flow, udp, 0, 32, IP_ID_UNKNOWN)).toBe(ICRC_BAD);
    }
  });

  test('is not looked for when the identification is known, nor over IPv6', () => {
    const bytes = new Uint8Array(64).fill(7);
    sealIcrc(flow, bytes, 0, 64, 5, undefined);
    expect(checkIcrc(flow, bytes, 0, 64, 6)).toBe(ICRC_BAD);
    const flow6 = new IcrcFlow(IpAddress.parse('fd77::1'), IpAddress.parse('fd77::2'), 1, 4791);
    sealIcrc(flow6, bytes, 0, 64, 5, undefined);
    expect(checkIcrc(flow6, bytes, 0, 64, IP_ID_UNKNOWN)).toBe(ICRC_OK);
    // The difference that an IPv4 identification would make.
    const [zero, five] = [bytes.slice(), bytes.slice()];
    sealIcrc(flow, zero, 0, 64, 0, undefined);
    sealIcrc(flow, five, 0, 64, 5, undefined);
    for (let at = 60; at < 64; at++) bytes[at] ^= zero[at] ^ five[at];
    expect(checkIcrc(flow6, bytes, 0, 64, IP_ID_UNKNOWN)).toBe(ICRC_BAD);
  });
});

test('a packet too short for BTH and ICRC is bad', () => {
  const flow = new IcrcFlow(A4, B4, 1, 2);
  for (let length = 0; length < 16; length++) {
    expect(checkIcrc(flow, new Uint8Array(length), 0, length, IP_ID_UNKNOWN)).toBe(ICRC_BAD);
  }
});

test('icrcOfIpPacket refuses what is not a complete UDP packet', () => {
  const good = naiveIpPacket(A4.bytes, B4.bytes, 1, 4791, 0, new Uint8Array(16));
  expect(() => icrcOfIpPacket(good)).not.toThrow();
  expect(() => icrcOfIpPacket(good.subarray(0, -1))).toThrow(/not a complete/);
  expect(() => icrcOfIpPacket(new Uint8Array(0))).toThrow(/not a complete/);
});

describe('a guessed identification', () => {
  const flow = new IcrcFlow(IpAddress.parse('10.0.0.1'), IpAddress.parse('10.0.0.2'), 0xc000, 4791);
  const sealed = (id: number) => {
    const bytes = new Uint8Array(64).fill(3);
    sealIcrc(flow, bytes, 0, bytes.length, id, undefined);
    return bytes;
  };

  test('needs no solving when it is right', () => {
    expect(checkIcrc(flow, sealed(14), 0, 64, IP_ID_UNKNOWN - 14)).toBe(ICRC_OK);
  });

  test('is corrected when it is wrong', () => {
    expect(checkIcrc(flow, sealed(0xbeef), 0, 64, IP_ID_UNKNOWN - 14)).toBe(ICRC_OK_ID_SOLVED);
    expect(flow.solvedId).toBe(0xbeef);
  });

  test('does not save a packet that is damaged', () => {
    const bytes = sealed(14);
    bytes[40] ^= 1;
    expect(checkIcrc(flow, bytes, 0, 64, IP_ID_UNKNOWN - 14)).toBe(ICRC_BAD);
  });
});

describe('renumberIcrc', () => {
  test('gives the ICRC that sealing with the other identification gives', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 16, maxLength: 4200 }),
        fc.integer({ min: 0, max: 0xffff }),
        fc.integer({ min: 0, max: 0xffff }),
        (bytes, from, to) => {
          const flow = new IcrcFlow(IpAddress.parse('10.0.0.1'), IpAddress.parse('10.0.0.2'), 0xc000, 4791);
          const expected = bytes.slice();
          sealIcrc(flow, expected, 0, expected.length, to, undefined);
          sealIcrc(flow, bytes, 0, bytes.length, from, undefined);
          renumberIcrc(bytes, 0, bytes.length, from, to);
          expect(bytes).toEqual(expected);
        },
      ),
    );
  });
});

describe('a train', () => {
  const flows = [
    new IcrcFlow(A4, B4, 0xc123, 4791),
    new IcrcFlow(IpAddress.parse('2001:db8::1'), IpAddress.parse('2001:db8::2'), 0xc123, 4791),
  ];
  const AT = 20;

  /** Right packets with the identifications 0, 1, 2 ... one behind another from {@link AT} on. */
  function train(random: RandomSource, flow: IcrcFlow, packetBytes: number, packets: number): Uint8Array {
    const bytes = Uint8Array.from({ length: AT + packets * packetBytes + 8 }, () => random.u32());
    for (let i = 0; i < packets; i++) {
      const at = AT + i * packetBytes;
      bytes[at + 4] &= 0xc0; // FECN and BECN are not covered; nothing says that there is a trailer.
      sealIcrc(flow, bytes, at, packetBytes, i, undefined);
    }
    return bytes;
  }

  test('of right packets holds, however many and long they are, and is left as it was', () => {
    const random = new SeededRandom(5).stream('trains');
    for (let n = 0; n < 40; n++) {
      const flow = flows[n & 1];
      const packetBytes = 4 * randomInt(random, 64, 120);
      const packets = randomInt(random, 1, TRAIN_PACKETS_MAX);
      const bytes = train(random, flow, packetBytes, packets);
      const before = bytes.slice();
      expect(trainHolds(flow, bytes, AT, packetBytes, packets)).toBe(true);
      expect(equalBytes(bytes, before)).toBe(true);
      for (let i = 0; i < packets; i++) {
        expect(checkIcrc(flow, bytes, AT + i * packetBytes, packetBytes, i)).toBe(ICRC_OK);
      }
    }
  });

  test.each([javaScriptCrc32(), zlibCrc32()])('holds by sums of $name, with a sign or without', (implementation) => {
    const random = new SeededRandom(9).stream('signs');
    useCrc32(implementation);
    onTestFinished(() => useCrc32(zlibCrc32())); // All give the same values.
    for (const flow of flows) {
      for (let packets = 1; packets <= 16; packets++) {
        const bytes = train(random, flow, 272, packets);
        expect(trainHolds(flow, bytes, AT, 272, packets)).toBe(true);
      }
    }
  });

  test('with one wrong packet never holds: bursts of up to 32 bits, in any packet', () => {
    const random = new SeededRandom(6).stream('bursts');
    const [packetBytes, packets] = [272, 15];
    for (const flow of flows) {
      const right = train(random, flow, packetBytes, packets);
      for (let n = 0; n < 1000; n++) {
        const bytes = right.slice();
        const packet = AT + randomInt(random, 0, packets - 1) * packetBytes;
        const at = packet + randomInt(random, 5, packetBytes - 4);
        for (let k = 0; k < 4; k++) bytes[at + k] ^= k === 0 ? random.u32() | 1 : random.u32();
        const before = bytes.slice();
        expect(trainHolds(flow, bytes, AT, packetBytes, packets)).toBe(false);
        expect(equalBytes(bytes, before)).toBe(true);
      }
    }
  });

  test('does not hold when two packets changed places, are the same, or are numbered otherwise', () => {
    const random = new SeededRandom(7).stream('places');
    const [flow] = flows;
    const [packetBytes, packets] = [272, 6];
    const right = train(random, flow, packetBytes, packets);
    const part = (i: number) => right.slice(AT + i * packetBytes, AT + (i + 1) * packetBytes);
    const swapped = right.slice();
    swapped.set(part(2), AT + 3 * packetBytes);
    swapped.set(part(3), AT + 2 * packetBytes);
    const doubled = right.slice();
    doubled.set(part(2), AT + 3 * packetBytes);
    const renumbered = right.slice();
    for (let i = 0; i < packets; i++) sealIcrc(flow, renumbered, AT + i * packetBytes, packetBytes, 7 + i, undefined);
    for (const bytes of [swapped, doubled, renumbered]) {
      expect(trainHolds(flow, bytes, AT, packetBytes, packets)).toBe(false);
    }
  });

  test('in which a packet says that it has a trailer does not hold: it is for the check of one packet', () => {
    const random = new SeededRandom(8).stream('trailers');
    const [flow] = flows;
    const bytes = train(random, flow, 272, 6);
    bytes[AT + 3 * 272 + 4] |= 0x20;
    const before = bytes.slice();
    expect(trainHolds(flow, bytes, AT, 272, 6)).toBe(false);
    expect(equalBytes(bytes, before)).toBe(true);
  });
});
