import { describe, expect, test } from 'vitest';
import { fromHex } from '../../src/core/bytes.js';
import * as aeth from '../../src/packet/aeth.js';
import { CREDIT_COUNT, RNR_TIMER_NS, syndromeKind } from '../../src/packet/aeth.js';
import { opcodeName } from '../../src/packet/opcode.js';
import { describeRoce, syndromeName } from '../../src/packet/view.js';

const describeHex = (text: string) => {
  const bytes = fromHex(text);
  return describeRoce(bytes, 0, bytes.length);
};

describe('describeRoce', () => {
  test('a WRITE', () => {
    const view = describeHex('0a30ffff0000001280fffffe 00007f001122334400001a2b00000005 6865 6c6c6f000000 5bbacfb0');
    expect(view).toMatchObject({ reason: 'ok', name: 'RC RDMA_WRITE_ONLY', payloadBytes: 5 });
    expect(view.fields).toMatchObject({
      qp: '0x000012',
      psn: 0xfffffe,
      ackReq: true,
      pad: 3,
      va: '0x00007f0011223344',
      rkey: '0x00001a2b',
      dmaLength: 5,
      icrc: '5bbacfb0',
    });
    expect(view.text).toMatch(/^RC RDMA_WRITE_ONLY qp=0x000012 .* payload=5$/);
  });

  test('a NAK and a SACK', () => {
    expect(describeHex('1100ffff0000001100000020 62000007 c2454561').fields).toMatchObject({
      syndrome: 'NAK REMOTE_ACCESS_ERROR',
      msn: 7,
    });
    expect(describeHex('d100ffff0000001100000020 1f000007 80000001 00000000').fields).toMatchObject({
      bitmap: '80000001',
    });
  });

  test('nonsense is shown as far as it goes', () => {
    expect(describeHex('')).toMatchObject({ name: 'empty', reason: 'too_short', fields: {} });
    expect(describeHex('0a00ffff')).toMatchObject({ name: 'RC RDMA_WRITE_ONLY', reason: 'too_short', fields: {} });
    const unknown = describeHex('1500ffff0000001180123456 00000000');
    expect(unknown).toMatchObject({ name: 'opcode 0x15', reason: 'unknown_opcode', payloadBytes: 0 });
    expect(unknown.fields).toMatchObject({ psn: 0x123456 });
    const cut = describeHex('0a00ffff0000001280fffffe 00007f0011223344');
    expect(cut.fields).not.toHaveProperty('va');
    expect(cut.text).toContain('(too_short, 20 bytes)');
  });

  test('a range beyond the array is clipped', () => {
    expect(describeRoce(new Uint8Array(4), 2, 100).reason).toBe('too_short');
    expect(describeRoce(new Uint8Array(4), 9, 100).name).toBe('empty');
    expect(describeRoce(new Uint8Array(4), 0, -1).name).toBe('empty');
  });
});

describe('AETH syndromes', () => {
  test('kinds', () => {
    expect(syndromeKind(aeth.SYNDROME_ACK)).toBe(aeth.SYNDROME_KIND_ACK);
    expect(syndromeKind(aeth.AETH_ACK | 5)).toBe(aeth.SYNDROME_KIND_ACK);
    expect(syndromeKind(aeth.SYNDROME_RNR | 12)).toBe(aeth.SYNDROME_KIND_RNR);
    expect(syndromeKind(aeth.NAK_REMOTE_OPERATION)).toBe(aeth.SYNDROME_KIND_NAK);
    expect(syndromeKind(0x40)).toBe(aeth.SYNDROME_KIND_RESERVED);
    for (let syndrome = 0x80; syndrome < 0x100; syndrome++) {
      expect(syndromeKind(syndrome)).toBe(aeth.SYNDROME_KIND_RESERVED);
    }
  });

  test('names', () => {
    expect([0x1f, 0x03, 0x20, 0x39, 0x60, 0x63, 0x7f, 0x45].map(syndromeName)).toEqual([
      'ACK',
      'ACK credits 3',
      'RNR 655.36 ms',
      'RNR 61.44 ms',
      'NAK PSN_SEQUENCE_ERROR',
      'NAK REMOTE_OPERATIONAL_ERROR',
      'NAK 31',
      'reserved 0x45',
    ]);
  });

  test('RNR timers double every second code, from 10 us to 655.36 ms', () => {
    expect(RNR_TIMER_NS).toHaveLength(32);
    expect(RNR_TIMER_NS.every(Number.isInteger)).toBe(true);
    expect([RNR_TIMER_NS[0], RNR_TIMER_NS[1], RNR_TIMER_NS[25]]).toEqual([655_360_000, 10_000, 61_440_000]);
    // Code 0 stands where code 32 would.
    for (let code = 4; code <= 32; code++) {
      expect(RNR_TIMER_NS[code % 32]).toBe(RNR_TIMER_NS[code - 2] * 2);
    }
  });

  test('credits double every second code', () => {
    expect(CREDIT_COUNT).toHaveLength(32);
    expect(CREDIT_COUNT.slice(0, 8)).toEqual([0, 1, 2, 3, 4, 6, 8, 12]);
    for (let code = 5; code <= 30; code++) expect(CREDIT_COUNT[code]).toBe(CREDIT_COUNT[code - 2] * 2);
    expect(CREDIT_COUNT[31]).toBe(Infinity);
  });
});

test('opcode names say the transport', () => {
  expect(opcodeName(0x26)).toBe('UC RDMA_WRITE_FIRST');
  expect(opcodeName(0xff)).toBe('opcode 0xff');
});
