import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { IpAddress } from '../../src/packet/address.js';
import { checkIcrc, ICRC_BAD, ICRC_OK, IcrcFlow, sealIcrc } from '../../src/packet/icrc.js';
import {
  appendHop,
  BTH_TRAILER,
  decodeDigest,
  decodeRate,
  encodeDigest,
  encodeRate,
  INT_DATA_HOPS,
  INT_DATA_TIMES,
  INT_ECHO,
  INT_HOPS_MAX,
  IntEcho,
  intTrailerBytes,
  raiseDigest,
  readIntKind,
  trailerBytesOf,
  writeDataTrailer,
  writeEchoTrailer,
} from '../../src/packet/int-trailer.js';
import { RC_SEND_ONLY } from '../../src/packet/opcode.js';
import { ICRC_BYTES, PARSE_OK, parseRoce, RocePacket, writeBth } from '../../src/packet/roce.js';

const flow = new IcrcFlow(IpAddress.parse('192.0.2.1'), IpAddress.parse('192.0.2.2'), 0xc000, 4791);
const PAYLOAD_BYTES = 1024;

/** A sealed SEND, with or without room for hops. Where it ends in `bytes`, and where the ICRC ends. */
function sealed(kind: number) {
  const bytes = new Uint8Array(4096);
  let o = writeBth(bytes, 0, RC_SEND_ONLY, 0x40, 5, false, 7);
  for (let i = 0; i < PAYLOAD_BYTES; i++) bytes[o++] = i;
  const icrcEnd = o + ICRC_BYTES;
  const end = kind === 0 ? icrcEnd : writeDataTrailer(bytes, 0, icrcEnd, kind, 123_456.7, 9);
  sealIcrc(flow, bytes, 0, end, 0, undefined);
  return { bytes, icrcEnd, end };
}

describe('a packet with a trailer', () => {
  it('has the ICRC of the packet without', () => {
    const [plain, trailed] = [sealed(0), sealed(INT_DATA_HOPS)];
    expect(trailed.icrcEnd).toBe(plain.icrcEnd);
    const icrc = ({ bytes, icrcEnd }: typeof plain) => bytes.subarray(icrcEnd - ICRC_BYTES, icrcEnd);
    expect(icrc(trailed)).toEqual(icrc(plain));
  });

  it('keeps its ICRC when switches write to the trailer, and loses it when the payload changes', () => {
    const { bytes, icrcEnd, end } = sealed(INT_DATA_HOPS);
    for (let hop = 0; hop <= INT_HOPS_MAX; hop++) {
      appendHop(bytes, end, { timeNs: 1000 * hop, sentBytes: 5, queueBytes: 512, rateBps: 100e9 });
      expect(checkIcrc(flow, bytes, 0, end, 0)).toBe(ICRC_OK);
    }
    bytes[icrcEnd - ICRC_BYTES - 1] ^= 1;
    expect(checkIcrc(flow, bytes, 0, end, 0)).toBe(ICRC_BAD);
  });

  it('is parsed as the packet without, and says where the trailer is', () => {
    const { bytes, icrcEnd, end } = sealed(INT_DATA_HOPS);
    const packet = new RocePacket();
    expect(parseRoce(bytes, 0, end, packet)).toBe(PARSE_OK);
    expect(packet).toMatchObject({ payloadBytes: PAYLOAD_BYTES, trailerOffset: icrcEnd, trailerBytes: end - icrcEnd });
  });

  it('has none where the reserved bit is set and no trailer is there', () => {
    const { bytes, end } = sealed(0);
    bytes[4] |= BTH_TRAILER;
    expect(readIntKind(bytes, 0, end)).toBe(0);
    expect(checkIcrc(flow, bytes, 0, end, 0)).toBe(ICRC_OK);
  });

  it('is read within its bounds, whatever the bytes are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 0, maxLength: 120 }), (bytes) => {
        if (bytes.length > 4) bytes[4] |= BTH_TRAILER;
        if (bytes.length > 2) bytes.set([0x52, 0x54], bytes.length - 2);
        expect(trailerBytesOf(bytes, 0, bytes.length)).toBeLessThanOrEqual(Math.max(0, bytes.length - 16));
        parseRoce(bytes, 0, bytes.length, new RocePacket());
        new IntEcho().read(bytes, bytes.length);
      }),
    );
  });
});

describe('an echo', () => {
  it('brings back what the switches wrote, and the counts', () => {
    const { bytes, icrcEnd, end } = sealed(INT_DATA_HOPS);
    const hops = [3, 4].map((i) => ({ timeNs: i, sentBytes: 1e9 + i, queueBytes: 256 * i, rateBps: i * 10e9 }));
    for (const hop of hops) appendHop(bytes, end, hop);
    raiseDigest(bytes, end, 9);
    raiseDigest(bytes, end, 8);
    const ack = new Uint8Array(200);
    const counts = { residenceNs: 250, received: 0xffff_ffff, marked: 3, isMarked: true, granted: 0 };
    const ackEnd = writeEchoTrailer(ack, 0, 20, INT_DATA_HOPS, bytes.subarray(icrcEnd, end), counts);
    expect(ackEnd - 20).toBe(intTrailerBytes(INT_ECHO | INT_DATA_HOPS));
    const echo = new IntEcho();
    expect(echo.read(ack, ackEnd)).toBe(true);
    expect(echo).toMatchObject({ ...counts, sentNs: 123_456, digest: 9, hopCount: 2 });
    expect(echo.hops.slice(0, 2)).toEqual(hops);
  });

  it('is not read from a data packet', () => {
    const { bytes, end } = sealed(INT_DATA_TIMES);
    expect(new IntEcho().read(bytes, end)).toBe(false);
  });
});

describe('codes', () => {
  it.each([1e9, 2.5e9, 10e9, 25e9, 40e9, 100e9, 400e9, 800e9, 123e6])('have the rate %d exactly', (rate) => {
    expect(decodeRate(encodeRate(rate))).toBe(rate);
  });

  it('have a utilization within 5 %, and on average exactly', () => {
    for (const u of [0.1, 0.5, 0.95, 1, 3, 50]) {
      const steps = 1000;
      let sum = 0;
      for (let i = 0; i < steps; i++) {
        const told = decodeDigest(encodeDigest(u, (i + 0.5) / steps));
        expect(Math.abs(told / u - 1)).toBeLessThan(0.051);
        sum += told;
      }
      expect(sum / steps / u).toBeCloseTo(1, 2);
    }
  });
});
