/** Who may write to a disk, claim by claim. */

import { expect, test } from 'vitest';
import type { LeaseRecord } from '../../../src/storage-rpc/disk/lease-store.js';
import { type DiskAccess, DiskLease } from '../../../src/storage-rpc/sk/disk-lease.js';

const LEASE_NS = 10;
const FIRST_TERM = 1000;
const GRACE_END_NS = 10;

interface Session {
  lastHeardNs: number;
  isConnected: boolean;
}

function disk(firstTerm = FIRST_TERM, last?: LeaseRecord) {
  const lease = new DiskLease<Session>({ leaseNs: LEASE_NS, firstTerm, graceEndNs: GRACE_END_NS }, last);
  const claim = (owner: string, now: number, access: DiskAccess = 'write', term = 0, isPatient = false) =>
    lease.claim({ owner, access, term, isPatient, label: `client ${owner}` }, now);
  const session = (owner: string, lastHeardNs: number, isConnected = true): Session => {
    const made = { lastHeardNs, isConnected };
    lease.join(owner, made);
    return made;
  };
  return { lease, claim, session };
}

test('a second writer is refused as long as the first is heard, and told who that is', () => {
  const { claim, session } = disk();
  expect(claim('a', 0)).toEqual({ outcome: 'granted', term: FIRST_TERM, evicted: [] });
  const first = session('a', 0);
  first.lastHeardNs = 95;
  const holder = { label: 'client a', isConnected: true, endsNs: 105 };
  expect(claim('b', 104)).toEqual({ outcome: 'leased', holder });
  first.isConnected = false;
  expect(claim('b', 104)).toEqual({ outcome: 'leased', holder: { ...holder, isConnected: false } });
});

test('the lease of a silent writer is taken over, and the writer is fenced, now and when its successor has gone', () => {
  const { lease, claim, session } = disk();
  claim('a', 0);
  const old = session('a', 0);
  expect(claim('b', 10)).toEqual({ outcome: 'granted', term: FIRST_TERM + 1, evicted: [old] });
  const next = session('b', 10);
  expect(claim('a', 11, 'write', FIRST_TERM)).toMatchObject({ outcome: 'fenced', holder: { label: 'client b' } });
  lease.release('b', next);
  expect(claim('a', 12, 'write', FIRST_TERM)).toEqual({ outcome: 'fenced', holder: undefined });
  // As somebody new it may, because nothing of its past comes with it.
  expect(claim('a', 13)).toMatchObject({ outcome: 'granted', term: FIRST_TERM + 2 });
});

test('a lease that ended and was not taken over goes on', () => {
  const { claim, session } = disk();
  claim('a', 0);
  session('a', 0, false);
  expect(claim('a', 1000, 'write', FIRST_TERM)).toEqual({ outcome: 'granted', term: FIRST_TERM, evicted: [] });
});

test('the last session that is closed ends the lease at once; one that is forgotten does not', () => {
  const { lease, claim, session } = disk();
  claim('a', 0);
  const [first, second] = [session('a', 0), session('a', 0)];
  lease.release('a', first);
  expect(claim('b', 1)).toMatchObject({ outcome: 'leased' });
  lease.release('a', second);
  expect(claim('b', 1)).toMatchObject({ outcome: 'granted' });
  lease.forget('b', session('b', 5));
  expect(claim('c', 14)).toMatchObject({ outcome: 'leased' });
  expect(claim('c', 15)).toMatchObject({ outcome: 'granted' });
});

test('clients that share a disk write together; one that wants it alone waits for all of them', () => {
  const { lease, claim, session } = disk();
  const granted = { outcome: 'granted', term: FIRST_TERM, evicted: [] };
  expect(claim('a', 0, 'shared')).toEqual(granted);
  expect(claim('b', 0, 'shared')).toEqual(granted);
  const [a, b] = [session('a', 0), session('b', 0)];
  expect(claim('c', 1)).toMatchObject({ outcome: 'leased' });
  lease.release('a', a);
  expect(claim('c', 1)).toMatchObject({ outcome: 'leased', holder: { label: 'client b' } });
  lease.release('b', b);
  expect(claim('c', 1)).toMatchObject({ outcome: 'granted', term: FIRST_TERM + 1 });
  session('c', 1);
  expect(claim('d', 2, 'shared')).toMatchObject({ outcome: 'leased' });
  expect(claim('a', 12, 'shared', FIRST_TERM)).toMatchObject({ outcome: 'fenced' });
});

test('who only reads needs no lease, and stops nobody', () => {
  const { lease, claim } = disk();
  expect(claim('r', 0, 'read')).toEqual({ outcome: 'granted', term: 0, evicted: [] });
  expect(claim('a', 0)).toMatchObject({ outcome: 'granted' });
  expect(claim('r', 0, 'read')).toMatchObject({ outcome: 'granted' });
  expect(lease.holders(1).map(({ label, access }) => [label, access])).toEqual([['client a', 'write']]);
  expect(lease.holders(10)).toEqual([]);
});

test('a server that was started anew knows its client again, but not one that another has followed', () => {
  const back = disk(2000);
  expect(back.claim('a', 0, 'write', FIRST_TERM)).toMatchObject({ outcome: 'granted', term: FIRST_TERM });
  expect(back.claim('b', 20)).toMatchObject({ outcome: 'granted', term: 2000 });

  const other = disk(2000);
  expect(other.claim('b', 0)).toMatchObject({ outcome: 'granted', term: 2000 });
  expect(other.claim('a', 100, 'write', FIRST_TERM)).toMatchObject({ outcome: 'fenced' });
});

test('after a start of the server, who can wait lets the one go first that had the disk', () => {
  const patient = (at: ReturnType<typeof disk>, now: number) => at.claim('b', now, 'write', 0, true);
  const unused = disk();
  expect(patient(unused, 9)).toMatchObject({ outcome: 'leased', holder: { isConnected: false, endsNs: 10 } });
  expect(patient(unused, 10)).toMatchObject({ outcome: 'granted' });

  const back = disk();
  expect(patient(back, 1)).toMatchObject({ outcome: 'leased' });
  expect(back.claim('a', 2, 'write', 7)).toMatchObject({ outcome: 'granted', term: 7 });
  back.session('a', 9);
  expect(patient(back, 10)).toMatchObject({ outcome: 'leased', holder: { label: 'client a' } });

  const impatient = disk();
  expect(impatient.claim('b', 1)).toMatchObject({ outcome: 'granted' });
});

test('with its record, the next life of a server fences who was fenced, and keeps the disk for who had it', () => {
  const first = disk();
  first.claim('a', 0);
  expect(first.claim('b', 10)).toMatchObject({ outcome: 'granted', term: FIRST_TERM + 1 });
  const { record } = first.lease;
  expect(record).toEqual({ term: FIRST_TERM + 1, owner: 'b', label: 'client b', isHeld: true });

  const next = disk(2000, record);
  expect(next.claim('a', 0, 'write', FIRST_TERM)).toMatchObject({ outcome: 'fenced', holder: { label: 'client b' } });
  expect(next.claim('c', 9)).toMatchObject({ outcome: 'leased', holder: { label: 'client b', isConnected: false } });
  expect(next.claim('b', 9, 'write', FIRST_TERM + 1)).toMatchObject({ outcome: 'granted', term: FIRST_TERM + 1 });
  next.lease.release('b', next.session('b', 9));
  expect(next.lease.record).toMatchObject({ owner: 'b', isHeld: false });

  // Who gave the disk back is not waited for; who was fenced two lives ago still is.
  const last = disk(3000, next.lease.record);
  expect(last.claim('a', 1, 'write', FIRST_TERM)).toMatchObject({ outcome: 'fenced' });
  expect(last.claim('c', 1)).toMatchObject({ outcome: 'granted', term: 3000 });
  // Without the record nobody knows: the negative twin.
  expect(disk(2000).claim('a', 0, 'write', FIRST_TERM)).toMatchObject({ outcome: 'granted' });
});

test('with its record, the next life of a server lets clients that shared the disk go on, and others wait', () => {
  const first = disk();
  first.claim('a', 0, 'shared');
  first.claim('b', 0, 'shared');
  const next = disk(2000, first.lease.record);
  expect(next.claim('c', 1)).toMatchObject({ outcome: 'leased', holder: { label: 'clients that share it' } });
  expect(next.claim('a', 2, 'shared', FIRST_TERM)).toMatchObject({ outcome: 'granted', term: FIRST_TERM });
  expect(next.claim('d', 3, 'shared')).toMatchObject({ outcome: 'granted', term: FIRST_TERM });
  expect(next.claim('c', 13)).toMatchObject({ outcome: 'granted', term: 2000 });
  expect(next.claim('b', 14, 'shared', FIRST_TERM)).toMatchObject({ outcome: 'fenced' });
});

test('clients that share the disk and never come back take bounded memory', () => {
  const lease = new DiskLease({ leaseNs: 10e9, firstTerm: 1, graceEndNs: 0 });
  for (let i = 0; i < 5000; i++) {
    const claim = { owner: `${i}`, access: 'shared', term: 0, isPatient: false, label: '' } as const;
    expect(lease.claim(claim, 1).outcome).toBe('granted');
  }
  expect(lease.holders(2)).toHaveLength(1024);
});
