/** Packets known by value: made by independent code, or published. All from the IP header on unless they say otherwise. */

import { describe, expect, test } from 'vitest';
import { fromHex, toHex } from '../../src/core/bytes.js';
import { IpAddress } from '../../src/packet/address.js';
import { FRAME_OK, FrameInfo, parseFrame } from '../../src/packet/frame.js';
import { checkIcrc, ICRC_BAD, ICRC_OK, IcrcFlow, icrcOfIpPacket, sealIcrc } from '../../src/packet/icrc.js';
import * as opcodes from '../../src/packet/opcode.js';
import { emitRoce, PARSE_OK, parseRoce, type RoceFields, RocePacket, writeCnp } from '../../src/packet/roce.js';

const A4 = IpAddress.parse('192.0.2.1');
const B4 = IpAddress.parse('192.0.2.2');
const A6 = IpAddress.parse('2001:db8::1');
const B6 = IpAddress.parse('2001:db8::2');
const A6_HEX = '20010db8000000000000000000000001';
const B6_HEX = '20010db8000000000000000000000002';

const HELLO = new TextEncoder().encode('hello');
const hello: RoceFields = { opcode: opcodes.RC_SEND_ONLY, destQpn: 0x11, ackReq: true, psn: 0x123456 };
const ack: RoceFields = { opcode: opcodes.RC_ACK, destQpn: 0x11, psn: 0x123456, syndrome: 0x1f, msn: 1 };

/** BTH .. ICRC as this code makes it. */
function make(flow: IcrcFlow, ipId: number, fields: RoceFields, payload?: Uint8Array): string {
  const packet = emitRoce(fields, payload);
  const sealed = new Uint8Array(packet.length + 4);
  sealed.set(packet);
  sealIcrc(flow, sealed, 0, sealed.length, ipId, undefined);
  return toHex(sealed);
}

const plain = (text: string) => toHex(fromHex(text));

describe('whole packets', () => {
  const ipPackets: Record<string, string> = {
    'IPv4 SEND_ONLY': `45000034123440004011a481c0000201c0000202 c00012b700200000 0430ffff0000001180123456 68656c6c6f000000 a18a5a39`,
    'IPv4 SEND_ONLY, identification 0': `45000034000040004011a481c0000201c0000202 c00012b700200000 0430ffff0000001180123456 68656c6c6f000000 30237e40`,
    'IPv4 SEND_ONLY, DF clear': `45000034123400004011a481c0000201c0000202 c00012b700200000 0430ffff0000001180123456 68656c6c6f000000 192f8375`,
    'IPv4 SEND_ONLY, TOS and TTL changed': `456a0034123440000311a481c0000201c0000202 c00012b700200000 0430ffff0000001180123456 68656c6c6f000000 a18a5a39`,
    'IPv6 SEND_ONLY': `6000000000201140${A6_HEX}${B6_HEX} c00012b700201234 0430ffff0000001180123456 68656c6c6f000000 e4434783`,
    'IPv4 RDMA_WRITE_ONLY': `45000044000040004011b6a5c0000201c0000202 c12312b700300000 0a00ffff0000001280fffffe 00007f001122334400001a2b00000008 0001020304050607 5bbacfb0`,
    'IPv4 ACK': `45000030000040004011b6b9c0000202c0000201 c00112b7001c0000 1100ffff0000001100123456 1f000001 8b6a8073`,
    'IPv6 ACK': `60000000001c1140${B6_HEX}${A6_HEX} c00112b7001cabcd 1100ffff0000001100123456 1f000001 b1b9f6d8`,
    CNP: `45c2003c000040004011b5ebc0000202c0000201 c00012b700280000 8100ffff4000001100000000 00000000000000000000000000000000 3bc3750c`,
    'CM REQ on QP 1': `45000134000040004011b5b5c0000201c0000202 c00012b701200000 6400ffff0000000100000000 8001000000000001
      010702030000000000000001112233440010000000000000 1122334400000000 0000000001061c06 0200000000000001 00000000 00000000
      00001101 00000001 000000a0 abcdefa7 ffff37f0 ffffffff 00000000000000000000ffffc0000201 00000000000000000000ffffc0000202
      00000002 00400088 ${'00'.repeat(44)} 0040b26e 000000000000000000000000c0000201 000000000000000000000000c0000202
      ${'00'.repeat(56)} e0329eb4`,
    'UC SEND_ONLY of scapy':
      '45010040047840004011b4d5c0a80007c0a80007 c00012b7002caca2 2460ffff000000d300cf1710 4630818be28935d90e9a95505401be885e500000 78f353f3',
    'CNP of a ConnectX-4 Lx, captured':
      '45c2003c718c4000401191610a0011010a001201 000012b700280000 8100ffff4000011800000000 00000000000000000000000000000000 82fd002a',
  };
  test.each(Object.entries(ipPackets))('%s carries the right ICRC', (_, text) => {
    const packet = fromHex(text);
    const { computed, carried } = icrcOfIpPacket(packet);
    expect(computed).toBe(carried);
    packet[packet.length - 5] ^= 1;
    expect(icrcOfIpPacket(packet).computed).not.toBe(carried);
  });

  test('the ConnectX-4 Lx CNP parses as a frame and as a packet', () => {
    const frame = fromHex(`e41d2dab2bc27cfe90643b320800 ${ipPackets['CNP of a ConnectX-4 Lx, captured']}`);
    const info = new FrameInfo();
    const packet = new RocePacket();
    expect(parseFrame(frame, 0, frame.length, info)).toBe(FRAME_OK);
    expect(info).toMatchObject({ sourcePort: 0, destinationPort: 4791, dscp: 48, ecn: 2, ipId: 0x718c });
    expect(parseRoce(frame, info.payloadOffset, info.payloadBytes, packet)).toBe(PARSE_OK);
    expect(packet).toMatchObject({ opcode: opcodes.CNP, becn: true, fecn: false, destQpn: 0x118, psn: 0 });
    const flow = new IcrcFlow(IpAddress.parse('10.0.17.1'), IpAddress.parse('10.0.18.1'), 0, 4791);
    expect(checkIcrc(flow, frame, info.payloadOffset, info.payloadBytes, info.ipId)).toBe(ICRC_OK);
    expect(checkIcrc(flow, frame, info.payloadOffset, info.payloadBytes, info.ipId ^ 1)).toBe(ICRC_BAD);
  });
});

describe('packets this code makes', () => {
  const requests = new IcrcFlow(A4, B4, 0xc123, 4791);
  const responses = new IcrcFlow(B4, A4, 0xc001, 4791);

  test('SEND_ONLY', () => {
    const flow = new IcrcFlow(A4, B4, 0xc000, 4791);
    expect(make(flow, 0x1234, hello, HELLO)).toBe(plain('0430ffff0000001180123456 68656c6c6f000000 a18a5a39'));
    expect(make(flow, 0, hello, HELLO)).toBe(plain('0430ffff0000001180123456 68656c6c6f000000 30237e40'));
    const flow6 = new IcrcFlow(A6, B6, 0xc000, 4791);
    expect(make(flow6, 0, hello, HELLO)).toBe(plain('0430ffff0000001180123456 68656c6c6f000000 e4434783'));
  });

  test('RDMA_WRITE_ONLY', () => {
    const write: RoceFields = {
      opcode: opcodes.RC_WRITE_ONLY,
      destQpn: 0x12,
      ackReq: true,
      psn: 0xfffffe,
      vaHigh: 0x7f00,
      vaLow: 0x11223344,
      rkey: 0x1a2b,
      dmaLength: 8,
    };
    expect(make(requests, 0, write, Uint8Array.of(0, 1, 2, 3, 4, 5, 6, 7))).toBe(
      plain('0a00ffff0000001280fffffe 00007f001122334400001a2b00000008 0001020304050607 5bbacfb0'),
    );
  });

  test('RDMA_READ_REQUEST', () => {
    const read: RoceFields = {
      opcode: opcodes.RC_READ_REQUEST,
      destQpn: 0x12,
      ackReq: true,
      psn: 0x10,
      vaLow: 0x1000,
      rkey: 0x1a2b,
      dmaLength: 3000,
    };
    expect(make(requests, 0, read)).toBe(plain('0c00ffff0000001280000010 000000000000100000001a2b00000bb8 25413bf6'));
  });

  test('COMPARE_SWAP and ATOMIC_ACKNOWLEDGE', () => {
    const swap: RoceFields = {
      opcode: opcodes.RC_COMPARE_SWAP,
      destQpn: 0x12,
      ackReq: true,
      psn: 0x13,
      vaLow: 0x1008,
      rkey: 0x1a2b,
      swapLow: 0x1111,
      compareLow: 0x2222,
    };
    expect(make(requests, 0, swap)).toBe(
      plain('1300ffff0000001280000013 000000000000100800001a2b 0000000000001111 0000000000002222 fab3a879'),
    );
    const answer: RoceFields = {
      opcode: opcodes.RC_ATOMIC_ACK,
      destQpn: 0x11,
      psn: 0x13,
      syndrome: 0x1f,
      msn: 7,
      origLow: 0x2222,
    };
    expect(make(responses, 0, answer)).toBe(plain('1200ffff0000001100000013 1f000007 0000000000002222 4d8d65c2'));
  });

  test('ACK and RNR NAK', () => {
    expect(make(responses, 0, ack)).toBe(plain('1100ffff0000001100123456 1f000001 8b6a8073'));
    expect(make(new IcrcFlow(B6, A6, 0xc001, 4791), 0, ack)).toBe(plain('1100ffff0000001100123456 1f000001 b1b9f6d8'));
    expect(make(responses, 0, { ...ack, psn: 0x20, syndrome: 0x2c, msn: 7 })).toBe(
      plain('1100ffff0000001100000020 2c000007 c2454561'),
    );
  });

  test('CNP', () => {
    const bytes = new Uint8Array(32).fill(0xee);
    expect(writeCnp(bytes, 0, 0x11)).toBe(28);
    sealIcrc(new IcrcFlow(B4, A4, 0xc000, 4791), bytes, 0, 32, 0, undefined);
    expect(toHex(bytes)).toBe(plain('8100ffff4000001100000000 00000000000000000000000000000000 3bc3750c'));
  });
});
