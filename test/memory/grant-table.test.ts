/** Grants of mapped regions: who may copy, until when, and for whom a revocation waits. */

import { describe, expect, it, vi } from 'vitest';
import { CopyView } from '../../src/memory/mapped/copy-view.js';
import { GRANT_TABLE_BYTES, GrantReader, GrantTable, type SlotSecret } from '../../src/memory/mapped/grant-table.js';
import { Access } from '../../src/verbs/access.js';

const QPN = 0x123456;
const PD = 7;
const SECRET: SlotSecret = [0xdead_beef, 0x8000_0001];
const REQUESTER = { pid: 4711, started: 2 ** 40 + 5 };
const GRANT = {
  rkey: 0xf000_0001,
  pd: PD,
  access: Access.REMOTE_READ,
  baseHigh: 0x7f00,
  baseLow: 0xffff_f000,
  lengthBytes: 5000,
  fd: 20,
  offsetBytes: 4096,
  segmentBytes: 2 ** 33,
};
const nobodyEnded = () => false;

function opened(pd = PD) {
  const table = new GrantTable(new SharedArrayBuffer(GRANT_TABLE_BYTES));
  const slot = table.openQueuePair(QPN, pd, SECRET, nobodyEnded)!;
  const reader = GrantReader.take(table.memory, slot, { qpn: QPN, secret: SECRET }, REQUESTER)!;
  return { table, slot, reader };
}

describe('the slot of a queue pair', () => {
  it('is taken once, by a peer that knows its number, QPN and secret', () => {
    const table = new GrantTable(new SharedArrayBuffer(GRANT_TABLE_BYTES));
    const slot = table.openQueuePair(QPN, PD, SECRET, nobodyEnded)!;
    const take = (qpn: number, secret: SlotSecret, at = slot) =>
      GrantReader.take(table.memory, at, { qpn, secret }, REQUESTER);
    for (const at of [-1, slot + 1, 1024]) expect(take(QPN, SECRET, at)).toBeUndefined();
    expect(take(QPN + 1, SECRET)).toBeUndefined();
    expect(take(QPN, [SECRET[0], 0])).toBeUndefined();
    expect(take(QPN, SECRET)).toBeDefined();
    expect(take(QPN, SECRET)).toBeUndefined();
  });

  it('of memory that is no table is not taken', () => {
    const memory = new SharedArrayBuffer(GRANT_TABLE_BYTES);
    expect(GrantReader.take(memory, 0, { qpn: 0, secret: [0, 0] }, REQUESTER)).toBeUndefined();
  });
});

describe('the slot of a closed queue pair', () => {
  const OTHER: SlotSecret = [1, 2];

  /** Closes the queue pair and opens as many as there are slots. */
  function reopened(hasEnded: (process: unknown) => boolean, leaves = false) {
    const { table, slot, reader } = opened();
    table.setAccess(slot, Access.REMOTE_ALL);
    const region = table.grant(GRANT)!;
    const found = reader.find(GRANT.rkey)!;
    table.closeQueuePair(slot);
    if (leaves) reader.leave();
    const slots = Array.from({ length: 1025 }, (_, i) => table.openQueuePair(i + 1, PD, OTHER, hasEnded));
    for (const other of slots) if (other !== undefined) table.setAccess(other, Access.REMOTE_ALL);
    return { table, slot, reader, region, found, slots };
  }

  it('is not used again while its requester may copy, which it may no longer begin', () => {
    const { table, slot, reader, region, found, slots } = reopened(nobodyEnded);
    expect(slots.slice(1023)).toEqual([undefined, undefined]);
    expect(slots).not.toContain(slot);
    expect(reader.begin(found, Access.REMOTE_READ)).toBe(false);
    expect(table.copierOf(region, nobodyEnded)).toBeUndefined();
  });

  it.each([
    ['has left', nobodyEnded, true],
    ['has ended', () => true, false],
  ])('is used again once its requester %s', (_, hasEnded, leaves) => {
    const { slot, slots } = reopened(hasEnded, leaves);
    expect(slots.slice(1023)).toEqual([slot, undefined]);
  });

  it('keeps a revocation waiting for a copy that has begun', () => {
    const { table, slot, reader } = opened();
    table.setAccess(slot, Access.REMOTE_ALL);
    const region = table.grant(GRANT)!;
    expect(reader.begin(reader.find(GRANT.rkey)!, Access.REMOTE_READ)).toBe(true);
    table.closeQueuePair(slot);
    table.revoke(region);
    expect(table.copierOf(region, nobodyEnded)).toEqual(REQUESTER);
    reader.end();
    expect(table.copierOf(region, nobodyEnded)).toBeUndefined();
  });

  it('is not taken by a late requester, also if another queue pair gets it at the same moment', () => {
    const table = new GrantTable(new SharedArrayBuffer(GRANT_TABLE_BYTES));
    const slot = table.openQueuePair(QPN, PD, SECRET, nobodyEnded)!;
    const { compareExchange } = Atomics;
    const atSameMoment = vi.spyOn(Atomics, 'compareExchange').mockImplementationOnce((...args) => {
      table.closeQueuePair(slot);
      expect(table.openQueuePair(QPN, PD, OTHER, nobodyEnded)).toBe(slot);
      return compareExchange(...(args as Parameters<typeof compareExchange>));
    });
    expect(GrantReader.take(table.memory, slot, { qpn: QPN, secret: SECRET }, REQUESTER)).toBeUndefined();
    atSameMoment.mockRestore();
    expect(GrantReader.take(table.memory, slot, { qpn: QPN, secret: OTHER }, REQUESTER)).toBeDefined();
  });
});

describe('a grant', () => {
  it('is found by its key in the protection domain of the queue pair, with every field', () => {
    const { table, reader } = opened();
    expect(reader.find(GRANT.rkey)).toBeUndefined();
    const { changes } = reader;
    table.grant(GRANT);
    expect(reader.changes).not.toBe(changes);
    expect(reader.find(GRANT.rkey)).toMatchObject(GRANT);
    expect(reader.find(GRANT.rkey + 1)).toBeUndefined();
    table.grant({ ...GRANT, rkey: 2, pd: PD + 1 });
    expect(reader.find(2)).toBeUndefined();
    table.grant({ ...GRANT, rkey: 3, segmentBytes: GRANT.offsetBytes + GRANT.lengthBytes - 1 });
    expect(reader.find(3)).toBeUndefined();
  });

  it('is used only as far as the queue pair of the peer executes such requests', () => {
    const { table, slot, reader } = opened();
    table.grant(GRANT);
    const found = reader.find(GRANT.rkey)!;
    expect(reader.begin(found, Access.REMOTE_READ)).toBe(false);
    table.setAccess(slot, Access.REMOTE_WRITE);
    expect(reader.begin(found, Access.REMOTE_READ)).toBe(false);
    table.setAccess(slot, Access.REMOTE_ALL);
    expect(reader.begin(found, Access.REMOTE_READ)).toBe(true);
    reader.end();
    table.setAccess(slot, undefined);
    expect(reader.begin(found, Access.REMOTE_READ)).toBe(false);
    expect(table.copierThrough(slot, nobodyEnded)).toBeUndefined();
  });

  it('that was revoked is not used, also when its key and slot are granted again', () => {
    const { table, slot, reader } = opened();
    table.setAccess(slot, Access.REMOTE_ALL);
    const region = table.grant(GRANT)!;
    const found = reader.find(GRANT.rkey)!;
    table.revoke(region);
    table.revoke(region);
    expect(reader.begin(found, Access.REMOTE_READ)).toBe(false);
    expect(reader.find(GRANT.rkey)).toBeUndefined();
    table.release(region);
    expect(table.grant(GRANT)).toBe(region);
    expect(reader.begin(found, Access.REMOTE_READ)).toBe(false);
    expect(reader.begin(reader.find(GRANT.rkey)!, Access.REMOTE_READ)).toBe(true);
  });

  it('is in use while a requester copies, unless that has ended', () => {
    const { table, slot, reader } = opened();
    table.setAccess(slot, Access.REMOTE_ALL);
    const [region, other] = [table.grant(GRANT)!, table.grant({ ...GRANT, rkey: 2 })!];
    reader.begin(reader.find(GRANT.rkey)!, Access.REMOTE_READ);
    table.revoke(region);
    expect(table.copierOf(region, nobodyEnded)).toEqual(REQUESTER);
    expect(table.copierOf(other, nobodyEnded)).toBeUndefined();
    const asked: unknown[] = [];
    expect(table.copierOf(region, (process) => asked.push(process) > 0)).toBeUndefined();
    expect(asked).toEqual([REQUESTER]);
    reader.end();
    expect(table.copierOf(region, nobodyEnded)).toBeUndefined();
  });

  it('is refused where the table is full, and possible again after a release', () => {
    const { table } = opened();
    const regions = Array.from({ length: 256 }, (_, i) => table.grant({ ...GRANT, rkey: i })!);
    expect(new Set(regions).size).toBe(256);
    expect(table.grant(GRANT)).toBeUndefined();
    table.revoke(regions[9]);
    table.release(regions[9]);
    expect(table.grant(GRANT)).toBe(regions[9]);
  });
});

describe('a view at virtual addresses', () => {
  const BASES = [0n, 0x7f00_0000_0000n, 0xffff_fff0n, 2n ** 64n - 256n];

  it.each(BASES)('from %i finds what is inside, and nothing else', (base) => {
    const view = new CopyView(new Uint8Array(256), Number(base >> 32n), Number(base & 0xffff_ffffn));
    expect(view.offsetOf(base, 256)).toBe(0);
    expect(view.offsetOf(base + 255n, 1)).toBe(255);
    for (const [va, length] of [
      [base - 1n, 1],
      [base, 257],
      [base + 255n, 2],
      [base + 256n, 1],
      [base + 2n ** 32n, 1],
      [base, 0],
      [base, 1.5],
      [base, Number.NaN],
    ] as const)
      expect(view.offsetOf(BigInt.asUintN(64, va), length), `${va} ${length}`).toBe(-1);
  });

  it('copies every length at every alignment, and touches nothing else', () => {
    const from = new CopyView(
      Uint8Array.from({ length: 160 }, (_, i) => i + 1),
      0,
      0,
    );
    for (const length of [1, 3, 4, 8, 63, 64, 65, 100]) {
      for (const [start, at] of [
        [0, 0],
        [4, 8],
        [1, 2],
        [3, 4],
      ]) {
        const to = new CopyView(new Uint8Array(160), 0, 0);
        from.copyTo(start, to, at, length);
        const wanted = new Uint8Array(160);
        wanted.set(from.bytes.subarray(start, start + length), at);
        expect(to.bytes).toEqual(wanted);
      }
    }
  });
});
