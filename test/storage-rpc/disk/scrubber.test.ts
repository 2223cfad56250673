/** The scrubber: finds what is damaged before somebody reads it, in virtual time, at the rate that was asked for. */

import { expect, test } from 'vitest';
import { EventQueue } from '../../../packages/lab/src/sim/event-queue.js';
import { virtualClock } from '../../../packages/lab/src/sim/virtual-clock.js';
import { type ScrubbedDisk, Scrubber } from '../../../src/storage-rpc/disk/scrubber.js';
import { pass, until } from '../../support/virtual-time.js';

const SECOND = 1e9;
const MIB = 1 << 20;
const REGION = 64 * MIB;

/** A disk of two regions, of which the second was never written; `damaged` says which blocks are. */
class Disk implements ScrubbedDisk {
  readonly sizeBytes = 2 * REGION;
  readonly damaged = new Set<number>();
  readonly looks: number[] = [];
  /** Refuses what lies in `[from, to)`. */
  refused = { from: 0, to: 0 };

  isUsed(offset: number): boolean {
    return offset < REGION;
  }

  async verify(offset: number, length: number): Promise<number[]> {
    if (offset >= this.refused.from && offset < this.refused.to) throw new Error('EIO: the platter is scratched');
    this.looks.push(offset);
    return [...this.damaged].filter((at) => at >= offset && at < offset + length);
  }
}

function scrub(bytesPerSecond: number) {
  const events = new EventQueue();
  const disk = new Disk();
  const says: string[] = [];
  const onNotice = (notice: string) => says.push(notice);
  const scrubber = new Scrubber({ disk, clock: virtualClock(events), bytesPerSecond, onNotice });
  return { events, disk, says, scrubber };
}

test('reads what was ever written, once a pass, at the rate', async () => {
  const { events, disk, scrubber, says } = scrub(MIB / 2);
  await pass(events, 64 * SECOND);
  expect(scrubber.checkedBytes).toBeGreaterThan(31 * MIB);
  expect(scrubber.checkedBytes).toBeLessThan(33 * MIB);
  await pass(events, 70 * SECOND);
  expect(scrubber.passes).toBe(1);
  expect(disk.looks.every((offset) => offset < REGION)).toBe(true);
  expect(says).toEqual([]);
  await until(events, scrubber.stop());
});

test('names each damaged block once, and forgets it when it has healed', async () => {
  const { events, disk, scrubber, says } = scrub(64 * MIB);
  disk.damaged.add(5 * MIB).add(40 * MIB);
  await pass(events, 200 * SECOND); // A small disk is read once a minute.
  expect(scrubber.passes).toBeGreaterThanOrEqual(3);
  expect(scrubber.passes).toBeLessThanOrEqual(4);
  expect(says).toEqual([
    `the scrubber found damage: the checksum of the 4 KiB at ${5 * MIB} is wrong`,
    `the scrubber found damage: the checksum of the 4 KiB at ${40 * MIB} is wrong`,
  ]);
  expect(scrubber.damagedBlocks).toBe(2);
  disk.damaged.delete(5 * MIB);
  await pass(events, 70 * SECOND);
  expect([scrubber.damagedBlocks, says.length]).toEqual([1, 2]);
  await until(events, scrubber.stop());
});

test('passes over what the disk refuses to read, says so once, and reads it again in the next pass', async () => {
  const { events, disk, scrubber, says } = scrub(64 * MIB);
  disk.refused = { from: 8 * MIB, to: 9 * MIB };
  disk.damaged.add(40 * MIB);
  await pass(events, 130 * SECOND);
  expect(scrubber.passes).toBeGreaterThanOrEqual(2);
  expect(says).toEqual([
    `the scrubber cannot read the disk from ${8 * MIB} on, and tries again in each pass: EIO: the platter is scratched`,
    `the scrubber found damage: the checksum of the 4 KiB at ${40 * MIB} is wrong`,
  ]);
  expect([scrubber.unreadableBytes, scrubber.checkedBytes % (63 * MIB)]).toEqual([MIB, 0]);
  disk.refused = { from: 0, to: 0 };
  await pass(events, 70 * SECOND);
  expect([scrubber.unreadableBytes, says.length]).toEqual([0, 2]);
  await until(events, scrubber.stop());
});

test('a disk that refuses everything is one sentence, and no busy loop', async () => {
  const { events, disk, scrubber, says } = scrub(64 * MIB);
  disk.refused = { from: 0, to: REGION };
  await pass(events, 200 * SECOND);
  expect(says.length).toBe(1);
  // The first step was taken before the disk began to refuse.
  expect([scrubber.checkedBytes, scrubber.unreadableBytes]).toEqual([256 << 10, REGION]);
  expect(scrubber.passes).toBeLessThanOrEqual(4);
  await until(events, scrubber.stop());
});

test('ends when it is told to, without a word about the disk that is then closed', async () => {
  const { events, disk, scrubber, says } = scrub(MIB);
  await pass(events, SECOND);
  const stopping = scrubber.stop();
  disk.refused = { from: 0, to: REGION };
  await until(events, stopping);
  const before = disk.looks.length;
  await pass(events, 100 * SECOND);
  expect([disk.looks.length, says]).toEqual([before, []]);
});
