/** The scrubber: finds what is damaged before somebody reads it, in virtual time, at the rate that was asked for. */

import { expect, test } from 'vitest';
import { EventQueue } from '../../../src/sim/event-queue.js';
import { virtualClock } from '../../../src/sim/virtual-clock.js';
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
  failing = false;

  isUsed(offset: number): boolean {
    return offset < REGION;
  }

  async verify(offset: number, length: number): Promise<number[]> {
    if (this.failing) throw new Error('EIO');
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

test('ends with its disk, and when it is told to', async () => {
  const { events, disk, scrubber } = scrub(MIB);
  await pass(events, SECOND);
  disk.failing = true;
  await pass(events, 100 * SECOND);
  const before = disk.looks.length;
  disk.failing = false;
  await pass(events, 100 * SECOND);
  expect(disk.looks.length).toBe(before);
  await until(events, scrubber.stop());
});
