import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fromHex, toHex } from '../../src/core/bytes.js';
import { highOfBig, lowOfBig } from '../../src/core/u64.js';
import * as opcodes from '../../src/packet/opcode.js';
import { emitRoce, PARSE_OK, PARSE_REASONS, parseRoce, RocePacket } from '../../src/packet/roce.js';
import { NAIVE_OPCODES, type NaiveFields, type NaiveOpcode, naiveEncode } from '../support/naive-codec.js';

const u24 = fc.integer({ min: 0, max: 0xffffff });
const u32 = fc.integer({ min: 0, max: 0xffffffff });
const u64 = fc.bigInt({ min: 0n, max: 0xffffffffffffffffn });

function arbitraryFields(opcode: number): fc.Arbitrary<NaiveFields> {
  return fc.record({
    opcode: fc.constant(opcode),
    solicited: fc.boolean(),
    migReq: fc.boolean(),
    pkey: fc.integer({ min: 0, max: 0xffff }),
    fecn: fc.boolean(),
    becn: fc.boolean(),
    resv6: fc.integer({ min: 0, max: 0x3f }),
    destQpn: u24,
    ackReq: fc.boolean(),
    resv7: fc.integer({ min: 0, max: 0x7f }),
    psn: u24,
    feth: u32,
    va: u64,
    rkey: u32,
    dmaLength: u32,
    syndrome: fc.integer({ min: 0, max: 0xff }),
    msn: u24,
    swap: u64,
    compare: u64,
    orig: u64,
    qkey: u32,
    sourceQpn: u24,
    immediate: u32,
    invalidateRkey: u32,
  });
}

function arbitraryPayload(kind: NaiveOpcode['payload']): fc.Arbitrary<Uint8Array> {
  if (kind === 'none') return fc.constant(new Uint8Array(0));
  if (kind === 'any') return fc.uint8Array({ maxLength: 70 });
  return fc
    .integer({ min: 1, max: 32 })
    .chain((words) => fc.uint8Array({ minLength: 4 * words, maxLength: 4 * words }));
}

/** The same fields in the form of this code. */
function inHalves(f: NaiveFields) {
  const { va, swap, compare, orig, ...rest } = f;
  return {
    ...rest,
    vaHigh: highOfBig(va),
    vaLow: lowOfBig(va),
    swapHigh: highOfBig(swap),
    swapLow: lowOfBig(swap),
    compareHigh: highOfBig(compare),
    compareLow: lowOfBig(compare),
    origHigh: highOfBig(orig),
    origLow: lowOfBig(orig),
  };
}

/** The fields each extension header holds: only these can be read back. */
const HEADER_FIELDS: Array<[number, Array<keyof ReturnType<typeof inHalves>>]> = [
  [opcodes.HDR_FETH, ['feth']],
  [opcodes.HDR_RETH, ['vaHigh', 'vaLow', 'rkey', 'dmaLength']],
  [opcodes.HDR_AETH, ['syndrome', 'msn']],
  [opcodes.HDR_ATOMIC_ETH, ['vaHigh', 'vaLow', 'rkey', 'swapHigh', 'swapLow', 'compareHigh', 'compareLow']],
  [opcodes.HDR_ATOMIC_ACK_ETH, ['origHigh', 'origLow']],
  [opcodes.HDR_DETH, ['qkey', 'sourceQpn']],
  [opcodes.HDR_IMM, ['immediate']],
  [opcodes.HDR_IETH, ['invalidateRkey']],
];

const BTH_FIELDS = [
  'opcode',
  'solicited',
  'migReq',
  'pkey',
  'fecn',
  'becn',
  'resv6',
  'destQpn',
  'ackReq',
  'resv7',
  'psn',
] as const;

test('the second opinion knows the same opcodes', () => {
  const known = opcodes.OPCODES.flatMap((info) => (info === undefined ? [] : [info.opcode]));
  expect(NAIVE_OPCODES.map(({ opcode }) => opcode)).toEqual(known);
});

describe.each(NAIVE_OPCODES.map((entry) => ({ ...entry, name: opcodes.opcodeName(entry.opcode) })))(
  '$name',
  ({ opcode, payload: kind }) => {
    test('emit and parse agree with an independent codec', () => {
      const packet = new RocePacket();
      const arbitraryOffset = fc.integer({ min: 0, max: 9 });
      fc.assert(
        fc.property(arbitraryFields(opcode), arbitraryPayload(kind), arbitraryOffset, (fields, payload, offset) => {
          const halves = inHalves(fields);
          const expected = naiveEncode(fields, payload);
          expect(toHex(emitRoce(halves, payload))).toBe(toHex(expected));

          const bytes = new Uint8Array(offset + expected.length + 4 + 5).fill(0xa5);
          bytes.set(expected, offset);
          expect(parseRoce(bytes, offset, expected.length + 4, packet)).toBe(PARSE_OK);
          for (const name of BTH_FIELDS) expect(packet[name]).toBe(fields[name]);
          for (const [header, names] of HEADER_FIELDS) {
            if (packet.info.headers & header) for (const name of names) expect(packet[name]).toBe(halves[name]);
          }
          expect(packet.payloadBytes).toBe(payload.length);
          const end = packet.payloadOffset + packet.payloadBytes;
          expect(toHex(bytes.subarray(packet.payloadOffset, end))).toBe(toHex(payload));
        }),
        { numRuns: 50 },
      );
    });

    test('every shorter length is refused or is a shorter payload', () => {
      const whole = new Uint8Array([...emitRoce({ opcode }), 0, 0, 0, 0]);
      if (kind === 'bitmap') {
        expect(reasonOf(whole)).toBe('bad_sack');
      } else expect(reasonOf(whole)).toBe('ok');
      for (let length = 0; length < whole.length; length++) expect(reasonOf(whole, length)).toBe('too_short');
    });
  },
);

const scratch = new RocePacket();

function reasonOf(bytes: Uint8Array, length = bytes.length): string {
  return PARSE_REASONS[parseRoce(bytes, 0, length, scratch)];
}

const ICRC = '00000000';

describe('malformed packets', () => {
  test.each([
    ['an unknown opcode', `1500ffff0000001180000000 ${ICRC}`, 'unknown_opcode'],
    ['a transport version other than 0', `0401ffff0000001180000000 ${ICRC}`, 'bad_tver'],
    ['pad without payload', `0410ffff0000001180000000 ${ICRC}`, 'bad_pad'],
    ['a payload that is not padded to four bytes', `0400ffff0000001180000000 aabb ${ICRC}`, 'bad_length'],
    ['an ACK with payload', `1100ffff0000001100000000 1f000001 aabbccdd ${ICRC}`, 'unexpected_payload'],
    ['an ACK with pad', `1130ffff0000001100000000 1f000001 ${ICRC}`, 'bad_pad'],
    ['an ACK with padded payload', `1130ffff0000001100000000 1f000001 aa000000 ${ICRC}`, 'unexpected_payload'],
    [
      'a READ request with payload',
      `0c00ffff0000001100000000 ${'00'.repeat(16)} aabbccdd ${ICRC}`,
      'unexpected_payload',
    ],
    ['a FETCH_ADD with payload', `1400ffff0000001100000000 ${'00'.repeat(28)} aabbccdd ${ICRC}`, 'unexpected_payload'],
    ['a FLUSH with payload', `1c00ffff0000001100000000 ${'00'.repeat(20)} aabbccdd ${ICRC}`, 'unexpected_payload'],
    ['a CNP with payload', `8100ffff4000001100000000 ${'00'.repeat(16)} aabbccdd ${ICRC}`, 'unexpected_payload'],
    ['a SACK without bitmap', `d100ffff0000001100000000 1f000001 ${ICRC}`, 'bad_sack'],
    ['a SACK with pad', `d110ffff0000001100000000 1f000001 ffffff00 ${ICRC}`, 'bad_sack'],
    ['a SACK with a ragged bitmap', `d100ffff0000001100000000 1f000001 ffff ${ICRC}`, 'bad_sack'],
    ['a SACK with too long a bitmap', `d100ffff0000001100000000 1f000001 ${'ff'.repeat(132)} ${ICRC}`, 'bad_sack'],
  ])('%s is refused', (_, text, reason) => {
    expect(reasonOf(fromHex(text))).toBe(reason);
  });

  test.each([
    ['an empty SEND', `0400ffff0000001180000000 ${ICRC}`],
    ['one byte and three of pad', `0430ffff0000001180000000 aa000000 ${ICRC}`],
    ['pad that fills the only word of a LAST packet but one byte', `0230ffff0000001180000000 aa000000 ${ICRC}`],
    ['a SACK of 1024 PSNs', `d100ffff0000001100000000 1f000001 ${'ff'.repeat(128)} ${ICRC}`],
  ])('%s is fine', (_, text) => {
    expect(reasonOf(fromHex(text))).toBe('ok');
  });
});

test('emitRoce refuses an opcode that has no entry', () => {
  expect(() => emitRoce({ opcode: 0x15 })).toThrow(RangeError);
});
