/** What sK messages look like in bytes, and that nothing else is taken for one. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { toHex } from '../../../src/core/bytes.js';
import { crc32c } from '../../../src/core/crc32c.js';
import { checksOf, firstBadBlock } from '../../../src/storage-rpc/sk/data-checks.js';
import { decodeExtents, encodeExtents } from '../../../src/storage-rpc/sk/extents.js';
import {
  checkInlineWriteBytesMax,
  readRequest,
  SK_FUA,
  type SkRequest,
  writeRequest,
} from '../../../src/storage-rpc/sk/request.js';
import { encodeMessage, readResponse } from '../../../src/storage-rpc/sk/response.js';
import { decodeResumeRequest, decodeResumeResponse, encodeResumeResponse } from '../../../src/storage-rpc/sk/resume.js';
import { SlotTable } from '../../../src/storage-rpc/sk/slot-table.js';
import { pattern } from './rig.js';

const REQUEST: SkRequest = {
  op: 'WRITE',
  flags: SK_FUA,
  sessionLow: 0x1122334455667788n,
  slot: 5,
  slotSeq: 0xdeadbeef,
  disk: 1,
  offset: 0x123456789000,
  length: 8192,
  descriptor: { addr: 0x7f0000001000n, rkey: 0xaabbccdd, length: 8192 },
  dataCrc: 0x01020304,
};

const DISK = { uuid: '01234567-89ab-cdef-0123-456789abcdef', generation: 7, name: 'orders', sizeBytes: 1 << 20 };

test('a request, byte by byte', () => {
  const bytes = Buffer.alloc(64);
  writeRequest(bytes, REQUEST, REQUEST.descriptor, REQUEST.dataCrc);
  expect(toHex(bytes.subarray(0, 60), 4)).toBe(
    [
      '536b5271 01 02 0100'.replaceAll(' ', ''),
      '88776655 44332211',
      '05000000 efbeadde 01000000',
      '00907856 34120000 00200000',
      '00100000 007f0000 ddccbbaa 00200000',
      '04030201',
    ]
      .join(' ')
      .replace('536b527101020100', '536b5271 01020100'),
  );
  expect(bytes.readUInt32LE(60)).toBe(crc32c(bytes.subarray(0, 60)));
  expect(readRequest(bytes)).toEqual(REQUEST);
});

test.each([0, 2 ** 32 - 1, 2 ** 32, Number.MAX_SAFE_INTEGER])('an offset of %d arrives as it was', (offset) => {
  const bytes = Buffer.alloc(64);
  writeRequest(bytes, { ...REQUEST, offset }, REQUEST.descriptor, REQUEST.dataCrc);
  expect(bytes.readBigUInt64LE(28)).toBe(BigInt(offset));
  expect(readRequest(bytes)).toEqual({ ...REQUEST, offset });
});

test('a response, byte by byte', () => {
  const response = {
    status: 'ENOSPC',
    flags: 0,
    slot: 5,
    slotSeq: 7,
    dataCrc: 1,
    moved: 0,
    serverTimeUs: 250,
  } as const;
  const bytes = encodeMessage(response, new Uint8Array(0), undefined);
  expect(toHex(bytes.subarray(0, 28), 4)).toBe('536b5273 011c0000 05000000 07000000 01000000 00000000 fa000000');
  expect(readResponse(bytes)).toEqual(response);
});

test('a changed bit anywhere in a header is noticed', () => {
  const request = Buffer.alloc(64);
  writeRequest(request, REQUEST, REQUEST.descriptor, REQUEST.dataCrc);
  for (let bit = 0; bit < 64 * 8; bit++) {
    const changed = Buffer.from(request);
    changed[bit >> 3] ^= 1 << (bit & 7);
    expect(typeof readRequest(changed)).toBe('string');
  }
});

test('fields that cannot be are refused, though the sum is right', () => {
  const spoil = (change: (bytes: Buffer) => void): unknown => {
    const bytes = Buffer.alloc(64);
    writeRequest(bytes, REQUEST, REQUEST.descriptor, REQUEST.dataCrc);
    change(bytes);
    bytes.writeUInt32LE(crc32c(bytes.subarray(0, 60)), 60);
    return readRequest(bytes);
  };
  expect(spoil((b) => b.writeUInt8(0, 5))).toBe('bad_field');
  expect(spoil((b) => b.writeUInt8(99, 5))).toBe('bad_field');
  expect(spoil((b) => b.writeUInt16LE(0x8000, 6))).toBe('bad_field');
  expect(spoil((b) => b.writeUInt16LE(128, 16))).toBe('bad_field');
  expect(spoil((b) => b.writeBigUInt64LE(1n << 60n, 28))).toBe('bad_field');
  expect(spoil((b) => b.writeBigUInt64LE(1n << 53n, 28))).toBe('bad_field');
  expect(spoil((b) => b.writeUInt32LE((1 << 20) + 1, 36))).toBe('bad_field');
  expect(spoil((b) => b.writeUInt8(2, 4))).toBe('bad_version');
});

test('an answer to RESUME that would have requests cut or placed wrongly is none', () => {
  const server = {
    bootId: 1n,
    disk: { ...DISK, openings: [{ mark: 0xfedc_ba98_7654_3210n, checkpoint: 0xffff_ffff }] },
    blockBytes: 512,
    ioBytesMax: 1 << 20,
    slots: 128,
    resumed: true,
    inlineWriteBytesMax: 8192,
    writeVerifier: 0xfedc_ba98_7654_3210n,
    readOnly: true,
    term: 0xffff_fffe,
    holder: { label: 'gateway of Zoë', isConnected: true },
    holderMs: 9_999,
  };
  expect(decodeResumeResponse(encodeResumeResponse(server))).toEqual(server);
  for (const wrong of [
    { disk: { ...DISK, sizeBytes: 2 ** 53 } },
    { disk: { ...DISK, sizeBytes: 1000 } },
    { disk: { ...DISK, generation: 2 ** 53 } },
    { blockBytes: 0 },
    { blockBytes: 768 },
    { ioBytesMax: 0 },
    { ioBytesMax: 1000 },
    { ioBytesMax: 2 << 20 },
    { slots: 64 },
    { inlineWriteBytesMax: 8193 },
  ]) {
    expect(decodeResumeResponse(encodeResumeResponse({ ...server, ...wrong })), JSON.stringify(wrong)).toBeUndefined();
  }
});

test.each([-1, 1.5, 8193, Number.NaN])('writes up to %s bytes cannot come with their requests', async (bytes) => {
  expect(() => checkInlineWriteBytesMax(bytes)).toThrow(/0 to 8192/);
});

test('any bytes at all are read without an exception', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const buffer = Buffer.from(bytes);
      readRequest(buffer);
      readResponse(buffer);
      decodeResumeRequest(buffer);
      decodeResumeResponse(buffer);
      decodeExtents(buffer);
    }),
    { numRuns: 5000 },
  );
});

test('checks name the bad block', () => {
  const data = pattern(20_000, 1);
  const checks = checksOf(data);
  expect(checks.list).toHaveLength(20);
  expect(firstBadBlock(data, checks)).toBe(-1);
  for (const [at, block] of [
    [0, 0],
    [4095, 0],
    [4096, 1],
    [19_999, 4],
  ] as const) {
    const changed = Buffer.from(data);
    changed[at] ^= 0x10;
    expect(firstBadBlock(changed, checks)).toBe(block);
  }
  const list = Uint8Array.from(checks.list);
  list[19] ^= 1;
  expect(firstBadBlock(data, { ...checks, list })).toBe(0);
  expect(firstBadBlock(data.subarray(0, 4096), checks)).toBe(0);
});

test('extents travel as far as they fit, and one that is too long for its field is cut and the last', () => {
  const extent = (lengthBytes: number, hole: boolean) => ({ lengthBytes, hole, zero: hole });
  const many = Array.from({ length: 300 }, (_, i) => extent(4096, i % 2 === 0));
  expect(decodeExtents(encodeExtents(many))).toEqual(many.slice(0, 128));
  expect(decodeExtents(encodeExtents([extent(2 ** 40, true), extent(4096, false)]))).toEqual([
    extent(0xfffff000, true),
  ]);
});

test('a slot executes each number once', () => {
  const slots = new SlotTable(2);
  expect(slots.admit(0, 1, false)).toBe('new');
  expect(slots.admit(0, 1, false)).toBe('again');
  expect(slots.admit(0, 2, false)).toBe('bad_seq');
  slots.finish(0, 'ENOSPC');
  expect(slots.admit(0, 1, false)).toBe('cached');
  expect(slots.outcome(0)).toBe('ENOSPC');
  expect(slots.admit(0, 3, false)).toBe('bad_seq');
  expect(slots.admit(0, 2, false)).toBe('new');
  slots.abandon(0);
  expect(slots.admit(0, 2, false)).toBe('new');
  slots.finish(0, 'OK');
  expect(slots.admit(0, 2, true)).toBe('new');
  expect(slots.admit(2, 1, false)).toBe('bad_seq');
});
