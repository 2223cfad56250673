/** Decisions of the manager that need no cluster: the length of a seal, and transactions of its metadata. */

import { describe, expect, it } from 'vitest';
import { MemoryMetadata } from '../../src/extents/memory-metadata.js';
import { sealedLength } from '../../src/extents/sealing.js';
import { virtualClock } from '../../src/sim/virtual-clock.js';
import { inVirtualTime, metadataContract } from '../contracts/metadata-contract.js';

const replica = (node: number, length: number, isRecovered = false) => ({ node, length, isRecovered });

describe('the length of a seal', () => {
  it('is the smallest of those that answer', () => {
    expect(sealedLength([replica(1, 30), replica(2, 20), replica(3, 30)], 20)).toBe(20);
  });

  it('does not count a replica that is shorter than what all of them had', () => {
    expect(sealedLength([replica(1, 30), replica(2, 10), replica(3, 20)], 20)).toBe(20);
  });

  it('believes memory before a disk that was started anew, and the disk if there is nothing else', () => {
    expect(sealedLength([replica(1, 30), replica(2, 10, true)], 0)).toBe(30);
    expect(sealedLength([replica(1, 30, true), replica(2, 10, true)], 0)).toBe(10);
  });

  it('is unknown where nobody answers', () => {
    expect(sealedLength([], 0)).toBeUndefined();
    expect(sealedLength([replica(1, 10)], 20)).toBeUndefined();
  });
});

metadataContract('metadata in memory', () => inVirtualTime(async (events) => new MemoryMetadata(virtualClock(events))));
