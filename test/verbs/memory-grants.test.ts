/** How long an owner waits for peers that copy from or to its regions, in virtual time. */

import { expect, it } from 'vitest';
import { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import { virtualClock } from '../../packages/lab/src/sim/virtual-clock.js';
import { GRANT_TABLE_BYTES, GrantReader } from '../../src/memory/mapped/grant-table.js';
import type { MemoryMapping } from '../../src/memory/mapped/memory-mapping.js';
import { Access } from '../../src/verbs/access.js';
import { MemoryGrants } from '../../src/verbs/memory-grants.js';
import { until } from '../support/virtual-time.js';

const LIMIT_NS = 5e9;
const REQUESTER = { pid: 4711, started: 99 };
const REGION = {
  rkey: 1,
  pd: 7,
  access: Access.REMOTE_WRITE,
  baseHigh: 0,
  baseLow: 0,
  lengthBytes: 64,
  offsetBytes: 0,
};

function copying() {
  const events = new EventQueue();
  const table = new SharedArrayBuffer(GRANT_TABLE_BYTES);
  const ended = new Set<number>();
  const mapping: MemoryMapping = {
    process: { pid: 1, started: 1 },
    u32: () => 5,
    allocate: () => undefined,
    descriptorOf: () => 3,
    createTable: () => ({ memory: table, fd: 4, close: () => {} }),
    open: () => undefined,
    copyable: (memory) => memory,
    hasEnded: ({ pid }) => ended.has(pid),
  };
  const grants = new MemoryGrants(mapping, virtualClock(events));
  const { slot, secret } = grants.openQueuePair(9, REGION.pd)!;
  grants.setAccess(slot, Access.REMOTE_ALL);
  const region = grants.grant(new SharedArrayBuffer(64), REGION)!;
  const reader = GrantReader.take(table, slot, { qpn: 9, secret }, REQUESTER)!;
  expect(reader.begin(reader.find(REGION.rkey)!, Access.REMOTE_WRITE)).toBe(true);
  return { events, grants, slot, region, reader, ended };
}

it('a revocation waits for the end of a copy', async () => {
  const { events, grants, region, reader } = copying();
  events.after(LIMIT_NS / 2, () => reader.end());
  await until(events, grants.revoke(region));
  expect(events.nowNs).toBeGreaterThanOrEqual(LIMIT_NS / 2);
  expect(events.nowNs).toBeLessThan(LIMIT_NS / 2 + 3e6);
});

it('a revocation waits for the death of the process that copies', async () => {
  const { events, grants, region, ended } = copying();
  events.after(1e9, () => ended.add(REQUESTER.pid));
  await until(events, grants.revoke(region));
  expect(events.nowNs).toBeLessThan(1e9 + 3e6);
});

it('a revocation names a process that does not end its copy, and can be repeated', async () => {
  const { events, grants, region, reader } = copying();
  const busy = { code: 'ERR_ROCE_BUSY', message: expect.stringContaining('process 4711') };
  for (const round of [1, 2]) {
    await expect(until(events, grants.revoke(region))).rejects.toMatchObject(busy);
    expect(events.nowNs).toBeGreaterThanOrEqual(round * LIMIT_NS);
    expect(events.nowNs).toBeLessThan(round * LIMIT_NS + 10e6);
  }
  // Revoked all the time: a further copy does not begin.
  expect(reader.find(REGION.rkey)).toBeUndefined();
  expect(grants.grant(new SharedArrayBuffer(64), { ...REGION, rkey: 2 })).not.toBe(region);
  reader.end();
  await until(events, grants.revoke(region));
  expect(grants.grant(new SharedArrayBuffer(64), { ...REGION, rkey: 3 })).toBe(region);
});

it('a queue pair waits no longer for its peer, but the region still names the process', async () => {
  const { events, grants, slot, region, reader } = copying();
  grants.setAccess(slot, undefined);
  await until(events, grants.quiesce(slot));
  expect(events.nowNs).toBeGreaterThanOrEqual(LIMIT_NS);
  grants.closeQueuePair(slot);
  await expect(until(events, grants.revoke(region))).rejects.toMatchObject({ code: 'ERR_ROCE_BUSY' });
  reader.end();
  await until(events, grants.revoke(region));
});
