import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { toHex } from '../../src/core/bytes.js';
import { randomInt, SeededRandom } from '../../src/core/random.js';
import { IpAddress } from '../../src/packet/address.js';
import { FRAME_OK, FrameInfo, parseFrame } from '../../src/packet/frame.js';
import {
  checkIcrc,
  ICRC_BAD,
  ICRC_OK,
  ICRC_OK_ID_SOLVED,
  IcrcFlow,
  IP_ID_UNKNOWN,
  icrcOfIpPacket,
  sealIcrc,
} from '../../src/packet/icrc.js';
import { emitRoce, PARSE_OK, parseRoce, RocePacket } from '../../src/packet/roce.js';
import { describeRoce } from '../../src/packet/view.js';
import { naiveIcrc } from '../support/naive-codec.js';
import { readPackets } from '../support/pcapng.js';

const folder = new URL('../golden/', import.meta.url);
const files = readdirSync(folder).filter((name) => name.endsWith('.pcapng'));

interface Golden {
  frame: Uint8Array;
  info: FrameInfo;
  udpPayload: Uint8Array;
  flow: IcrcFlow;
}

function load(file: string): Golden[] {
  return readPackets(new URL(file, folder)).map((frame) => {
    const info = new FrameInfo();
    expect(parseFrame(frame, 0, frame.length, info)).toBe(FRAME_OK);
    const address = (at: number) => IpAddress.fromBytes(frame.subarray(at, at + info.addressBytes));
    const flow = new IcrcFlow(
      address(info.sourceOffset),
      address(info.destinationOffset),
      info.sourcePort,
      info.destinationPort,
    );
    return { frame, info, udpPayload: frame.slice(info.payloadOffset, info.payloadOffset + info.payloadBytes), flow };
  });
}

const goldens = files.map((file) => ({ file, packets: load(file) }));

test('the golden captures hold 48 files and 1392 RoCE packets', () => {
  expect(files).toHaveLength(48);
  expect(goldens.reduce((sum, { packets }) => sum + packets.length, 0)).toBe(1392);
});

describe.each(goldens)('$file', ({ packets }) => {
  test('every packet parses, and is written again byte for byte', () => {
    const packet = new RocePacket();
    for (const { udpPayload } of packets) {
      expect(parseRoce(udpPayload, 0, udpPayload.length, packet)).toBe(PARSE_OK);
      const payload = udpPayload.subarray(packet.payloadOffset, packet.payloadOffset + packet.payloadBytes);
      expect(toHex(emitRoce(packet, payload))).toBe(toHex(udpPayload.subarray(0, -4)));
      expect(describeRoce(udpPayload, 0, udpPayload.length).reason).toBe('ok');
    }
  });

  test('every ICRC agrees: with the identification, without it, over the whole packet, and by the naive sum', () => {
    for (const { frame, info, udpPayload, flow } of packets) {
      const { ipId } = info;
      expect(checkIcrc(flow, udpPayload, 0, udpPayload.length, ipId)).toBe(ICRC_OK);
      expect(checkIcrc(flow, frame, info.payloadOffset, info.payloadBytes, ipId)).toBe(ICRC_OK);
      const solved = checkIcrc(flow, udpPayload, 0, udpPayload.length, IP_ID_UNKNOWN);
      if (ipId === 0) expect(solved).toBe(ICRC_OK);
      else {
        expect(solved).toBe(ICRC_OK_ID_SOLVED);
        expect(flow.solvedId).toBe(ipId);
      }
      const ipPacket = frame.subarray(info.ipOffset, info.payloadOffset + info.payloadBytes);
      const { computed, carried } = icrcOfIpPacket(ipPacket);
      expect(computed).toBe(carried);
      expect(naiveIcrc(ipPacket.subarray(0, -4))).toBe(carried);
    }
  });

  test('sealing a packet gives the ICRC that was captured', () => {
    for (const { info, udpPayload, flow } of packets) {
      const bytes = udpPayload.slice();
      bytes.fill(0, -4);
      sealIcrc(flow, bytes, 0, bytes.length, info.ipId, undefined);
      expect(toHex(bytes)).toBe(toHex(udpPayload));
      bytes.fill(0, -4);
      sealIcrc(flow, bytes, 0, bytes.length, info.ipId, bytes.subarray(0, -4));
      expect(toHex(bytes)).toBe(toHex(udpPayload));
    }
  });

  test('a flipped bit is noticed, unless the ICRC masks it', () => {
    const random = new SeededRandom(1).stream('flips');
    for (const { info, udpPayload, flow } of packets) {
      for (let i = 0; i < 8; i++) {
        const bytes = udpPayload.slice();
        const bit = randomInt(random, 0, bytes.length * 8 - 1);
        bytes[bit >> 3] ^= 1 << (bit & 7);
        const masked = bit >> 3 === 4;
        expect(checkIcrc(flow, bytes, 0, bytes.length, info.ipId)).toBe(masked ? ICRC_OK : ICRC_BAD);
        bytes[bit >> 3] ^= 1 << (bit & 7);
        expect(toHex(bytes)).toBe(toHex(udpPayload));
      }
    }
  });

  test('routers may change class, hop limit, checksums and congestion bits; nobody may change addresses, ports or lengths', () => {
    for (const { frame, info } of packets) {
      const ipPacket = frame.slice(info.ipOffset, info.payloadOffset + info.payloadBytes);
      const v4 = info.family === 4;
      const udp = v4 ? 20 : 40;
      const agreesAfterFlip = (at: number, mask: number) => {
        ipPacket[at] ^= mask;
        const { computed, carried } = icrcOfIpPacket(ipPacket);
        ipPacket[at] ^= mask;
        return computed === carried;
      };
      for (const at of v4 ? [1, 8, 10, 11] : [1, 2, 3, 7]) expect(agreesAfterFlip(at, 0x41)).toBe(true);
      for (const at of [udp + 6, udp + 7, udp + 12]) expect(agreesAfterFlip(at, 0xff)).toBe(true);
      for (const at of v4 ? [4, 5, 6, 12, 19] : [8, 23, 24, 39]) expect(agreesAfterFlip(at, 0x01)).toBe(false);
      for (const at of [udp, udp + 3, udp + 5, udp + 9, udp + 16]) expect(agreesAfterFlip(at, 0x80)).toBe(false);
    }
  });
});
