/** Decisions of the manager that need no cluster: the length of a seal, and transactions of its metadata. */

import { describe, expect, it } from 'vitest';
import { inVirtualTime, metadataContract } from '../../../test/contracts/metadata-contract.js';
import { virtualClock } from '../../lab/src/sim/virtual-clock.js';
import { MemoryMetadata } from '../src/memory-metadata.js';
import { sealedLength } from '../src/sealing.js';

const replica = (node: number, length: number, restarts = 0, committed = 0) => ({
  node,
  length,
  committed,
  restarts,
});

describe('the length of a seal', () => {
  it('is the smallest of those that answer', () => {
    expect(sealedLength([replica(1, 30), replica(2, 20), replica(3, 30)], 20)).toBe(20);
  });

  it('does not count a replica that is shorter than what all of them had', () => {
    expect(sealedLength([replica(1, 30), replica(2, 10), replica(3, 20)], 20)).toBe(20);
  });

  it('believes memory before a disk that was started anew, and the disk if there is nothing else', () => {
    expect(sealedLength([replica(1, 30), replica(2, 10, 1)], 0)).toBe(30);
    expect(sealedLength([replica(1, 30, 1), replica(2, 10, 1)], 0)).toBe(10);
  });

  it('does not count an old copy of a disk that is shorter than what a record of another one says to be on all', () => {
    expect(sealedLength([replica(1, 0, 1), replica(2, 30, 1, 20)], 0)).toBe(30);
    expect(sealedLength([replica(1, 20, 1), replica(2, 30, 1, 20)], 0)).toBe(20);
  });

  it('believes disks that were started anew less often before others: an old copy looks like one more start', () => {
    expect(sealedLength([replica(1, 0, 2), replica(2, 30, 1), replica(3, 20, 1)], 0)).toBe(20);
  });

  it('is unknown where nobody answers', () => {
    expect(sealedLength([], 0)).toBeUndefined();
    expect(sealedLength([replica(1, 10)], 20)).toBeUndefined();
  });
});

metadataContract('metadata in memory', () => inVirtualTime(async (events) => new MemoryMetadata(virtualClock(events))));
