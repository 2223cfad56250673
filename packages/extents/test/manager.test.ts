/** Decisions of the manager that need no cluster: the length of a seal, and transactions of its metadata. */

import { describe, expect, it } from 'vitest';
import { inVirtualTime, metadataContract } from '../../../test/contracts/metadata-contract.js';
import { virtualClock } from '../../lab/src/sim/virtual-clock.js';
import { MemoryMetadata } from '../src/memory-metadata.js';
import { type FencedReplica, type SealCandidates, sealedLength } from '../src/sealing.js';

const replica = (node: number, length: number, restarts = 0, committed = 0) => ({
  node,
  length,
  committed,
  restarts,
});

const lengthOf = (replicas: readonly FencedReplica[], rest: Partial<SealCandidates> = {}) =>
  sealedLength({ replicas, silent: [], ...rest }).length;

describe('the length of a seal', () => {
  it('is the smallest of those whose nodes have run since the extent was opened', () => {
    expect(lengthOf([replica(1, 30), replica(2, 20), replica(3, 30)])).toBe(20);
    expect(lengthOf([replica(1, 30), replica(2, 10, 1)], { silent: [3] })).toBe(30);
  });

  it('does not count a replica that is shorter than what all of them had', () => {
    expect(lengthOf([replica(1, 30), replica(2, 10), replica(3, 20)], { acked: 20 })).toBe(20);
    expect(lengthOf([replica(1, 0, 1), replica(2, 20, 1), replica(3, 30, 1, 20)])).toBe(30);
  });

  it('is the longest that has what the owner says to be acknowledged, of replicas read from disks', () => {
    expect(lengthOf([replica(1, 30, 1), replica(2, 20, 1)], { acked: 20, silent: [3] })).toBe(30);
    expect(lengthOf([replica(1, 10)], { acked: 20 })).toBeUndefined();
  });

  it('is the longest of disks that were read after a crash, where all answer', () => {
    expect(lengthOf([replica(1, 10, 1), replica(2, 30, 1), replica(3, 20, 2)])).toBe(30);
    expect(lengthOf([replica(1, 10, 1), replica(2, 30, 1)])).toBe(30);
  });

  it('is not certain while a node is silent, or where one disk is left: the operator decides', () => {
    const two = [replica(1, 10, 1), replica(2, 30, 1)];
    expect(sealedLength({ replicas: two, silent: [3] })).toEqual({
      length: undefined,
      reason: expect.stringMatching(/^nodes 1, 2 crashed while it was open, and may lack records that node 3 has/),
    });
    expect(lengthOf(two, { silent: [3], isAccepted: true })).toBe(30);
    expect(lengthOf([replica(1, 10, 1)])).toBeUndefined();
    expect(lengthOf([replica(1, 10, 1)], { isAccepted: true })).toBe(10);
  });

  it('is that at which a replica is sealed', () => {
    expect(lengthOf([replica(1, 30), { ...replica(2, 20, 1), sealed: 20 }])).toBe(20);
  });

  it('is unknown where nobody answers', () => {
    expect(lengthOf([], { isAccepted: true })).toBeUndefined();
  });
});

metadataContract('metadata in memory', () => inVirtualTime(async (events) => new MemoryMetadata(virtualClock(events))));
