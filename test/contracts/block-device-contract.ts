/**
 * What every disk does, whatever is behind it. Each test gets a fresh one of {@link CONTRACT_DISK_BYTES}; a model in memory says what it
 * must hold.
 */

import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { portableCrc32c } from '../../src/core/crc32c.js';
import { type BlockDevice, BlockDeviceError, type BlockErrno } from '../../src/storage-rpc/disk/block-device.js';

export const CONTRACT_DISK_BYTES = 1 << 20;

async function contents(disk: BlockDevice, offset = 0, length = disk.sizeBytes - offset): Promise<Buffer> {
  const bytes = Buffer.alloc(length, 0xee);
  await disk.read(offset, length, bytes);
  return bytes;
}

async function errnoOf(work: Promise<unknown>): Promise<BlockErrno | 'none'> {
  try {
    await work;
    return 'none';
  } catch (error) {
    if (error instanceof BlockDeviceError) return error.errno;
    throw error;
  }
}

/** Runs the contract over what `open` gives; `close` undoes what `open` made beside the disk. */
export function blockDeviceContract(name: string, open: () => Promise<BlockDevice>, close?: () => Promise<void>): void {
  describe(`${name} as a block device`, () => {
    let disk: BlockDevice;
    beforeEach(async () => {
      disk = await open();
    });
    afterEach(async () => {
      await disk.close();
      await close?.();
    });

    /** `units` blocks, for disks that want whole ones. */
    const aligned = (units: number): number => units * Math.max(disk.blockBytes, 512);

    test('is all zeros at first', async () => {
      expect((await contents(disk)).every((byte) => byte === 0)).toBe(true);
    });

    test('holds what was written, and nothing beside it changes', async () => {
      await disk.write(aligned(3), Buffer.alloc(aligned(5), 0x11));
      const all = await contents(disk);
      expect(all.subarray(0, aligned(3)).every((byte) => byte === 0)).toBe(true);
      expect(all.subarray(aligned(3), aligned(8)).every((byte) => byte === 0x11)).toBe(true);
      expect(all.subarray(aligned(8)).every((byte) => byte === 0)).toBe(true);
    });

    test('zeros that are to be fast are zeros, or refused with nothing changed', async () => {
      await disk.write(0, Buffer.alloc(disk.sizeBytes, 0x33));
      for (const [from, to] of [
        [0, 64 * 1024],
        [aligned(129), aligned(131)],
      ]) {
        const before = await contents(disk);
        const errno = await errnoOf(disk.writeZeroes(from, to - from, { fast: true }));
        expect(['none', 'ENOTSUP']).toContain(errno);
        if (errno === 'none') before.fill(0, from, to);
        expect((await contents(disk)).equals(before)).toBe(true);
      }
    });

    test('what is to be read soon stays as it is, and has to be on the disk', async () => {
      await disk.write(0, Buffer.alloc(disk.sizeBytes, 0x33));
      await disk.prefetch?.(aligned(1), disk.sizeBytes - aligned(1));
      expect((await contents(disk)).every((byte) => byte === 0x33)).toBe(true);
      const past =
        disk.prefetch?.(disk.sizeBytes, aligned(1)) ?? Promise.reject(new BlockDeviceError('EINVAL', 'absent'));
      expect(await errnoOf(past)).toBe('EINVAL');
    });

    test('with the CRCs of its blocks data is the same, and a disk that keeps them says them again', async () => {
      const data = Buffer.from(Array.from({ length: 3 * 4096 }, (_, i) => (i * 7919) >> 3));
      const crcs = Uint32Array.from([0, 1, 2], (i) => portableCrc32c(data.subarray(i * 4096, (i + 1) * 4096)));
      await disk.write(2 * 4096, data, { crcs });
      expect((await contents(disk, 2 * 4096, data.length)).equals(data)).toBe(true);
      const into = Buffer.alloc(data.length);
      const kept = await disk.readChecked?.(2 * 4096, data.length, into);
      if (kept === undefined) return;
      expect(kept).toEqual(crcs);
      expect(into.equals(data)).toBe(true);
      const zeros = await disk.readChecked!(0, 4096, into);
      expect(zeros).toEqual(Uint32Array.of(portableCrc32c(new Uint8Array(4096))));
    });

    test('fills no more of the buffer than was asked for', async () => {
      const into = Buffer.alloc(aligned(2), 0xee);
      await disk.read(0, aligned(1), into);
      expect(into.subarray(aligned(1)).every((byte) => byte === 0xee)).toBe(true);
    });

    test('refuses what lies past the end: EINVAL where bytes are asked for, ENOSPC where they are brought', async () => {
      const { sizeBytes } = disk;
      const one = aligned(1);
      const bytes = Buffer.alloc(aligned(2));
      expect(await errnoOf(disk.read(sizeBytes, one, bytes))).toBe('EINVAL');
      expect(await errnoOf(disk.read(sizeBytes - one, 2 * one, bytes))).toBe('EINVAL');
      expect(await errnoOf(disk.read(2 ** 53 - 512, one, bytes))).toBe('EINVAL');
      expect(await errnoOf(disk.read(-one, one, bytes))).toBe('EINVAL');
      expect(await errnoOf(disk.write(sizeBytes - one, bytes))).toBe('ENOSPC');
      expect(await errnoOf(disk.writeZeroes(sizeBytes - one, 2 * one))).toBe('ENOSPC');
      expect(await errnoOf(disk.trim(sizeBytes - one, 2 * one))).toBe('EINVAL');
      expect(await errnoOf(disk.read(sizeBytes - one, one, bytes))).toBe('none');
    });

    test('holds what a model holds after any requests, one after another', async () => {
      const unit = aligned(1);
      const units = disk.sizeBytes / unit;
      const model = await contents(disk);
      const request = fc.record({
        kind: fc.constantFrom('write', 'zero', 'noHole', 'flush', 'fua'),
        at: fc.nat(units - 1),
        count: fc.integer({ min: 1, max: 300 }),
        byte: fc.integer({ min: 1, max: 255 }),
      });
      await fc.assert(
        fc.asyncProperty(fc.array(request, { maxLength: 12 }), async (requests) => {
          for (const { kind, at, count, byte } of requests) {
            const offset = at * unit;
            const length = Math.min(count, units - at) * unit;
            if (kind === 'flush') await disk.flush();
            else if (kind === 'zero' || kind === 'noHole') {
              await disk.writeZeroes(offset, length, { noHole: kind === 'noHole' });
              model.fill(0, offset, offset + length);
            } else {
              await disk.write(offset, Buffer.alloc(length, byte), { fua: kind === 'fua' });
              model.fill(byte, offset, offset + length);
            }
          }
          expect((await contents(disk)).equals(model)).toBe(true);
        }),
        { numRuns: 25, endOnFailure: true }, // The disk is the same in every run: what a smaller example finds would be another's fault.
      );
    });

    test('takes many requests at once, overlapping ones as if one came after the other', async () => {
      const length = aligned(16);
      const pages = Array.from({ length: 24 }, (_, i) => i + 1);
      await Promise.all(pages.map((byte) => disk.write(aligned(8), Buffer.alloc(length, byte))));
      const read = await contents(disk, aligned(8), length);
      expect(pages).toContain(read[0]);
      expect(read.every((byte) => byte === read[0])).toBe(true);
      await Promise.all(pages.map((byte) => disk.write(byte * length, Buffer.alloc(length, byte))));
      const all = await Promise.all(pages.map((byte) => contents(disk, byte * length, length)));
      all.forEach((page, i) => void expect(page.every((byte) => byte === pages[i])).toBe(true));
    });

    test('a trimmed range reads as zeros or as before', async () => {
      await disk.write(0, Buffer.alloc(aligned(256), 0x33));
      await disk.trim(aligned(1), aligned(200));
      const all = await contents(disk, 0, aligned(256));
      expect(all.every((byte) => byte === 0 || byte === 0x33)).toBe(true);
      expect(all.subarray(0, aligned(1)).every((byte) => byte === 0x33)).toBe(true);
      expect(all.subarray(aligned(201)).every((byte) => byte === 0x33)).toBe(true);
    });

    test('says where data is: what it calls zero is zero, and its runs cover what was asked', async () => {
      if (disk.blockStatus === undefined) return;
      await disk.write(aligned(512), Buffer.alloc(aligned(256), 0x44));
      const extents = await disk.blockStatus(aligned(2), disk.sizeBytes - aligned(2));
      let at = aligned(2);
      const all = await contents(disk);
      for (const { lengthBytes, zero } of extents) {
        expect(lengthBytes).toBeGreaterThan(0);
        if (zero) expect(all.subarray(at, at + lengthBytes).every((byte) => byte === 0)).toBe(true);
        at += lengthBytes;
      }
      expect(at).toBeGreaterThanOrEqual(disk.sizeBytes);
    });

    test('zero bytes are a request like any other', async () => {
      expect(await errnoOf(disk.read(0, 0, Buffer.alloc(0)))).toBe('none');
      expect(await errnoOf(disk.write(disk.sizeBytes, Buffer.alloc(0)))).toBe('none');
      expect(await errnoOf(disk.writeZeroes(0, 0))).toBe('none');
      expect(await errnoOf(disk.trim(0, 0))).toBe('none');
    });

    test('after close every request fails with ESHUTDOWN; closing twice is closing once', async () => {
      await disk.close();
      await disk.close();
      expect(await errnoOf(disk.read(0, aligned(1), Buffer.alloc(aligned(1))))).toBe('ESHUTDOWN');
      expect(await errnoOf(disk.write(0, Buffer.alloc(aligned(1))))).toBe('ESHUTDOWN');
      expect(await errnoOf(disk.flush())).toBe('ESHUTDOWN');
      expect(await errnoOf(disk.trim(0, aligned(1)))).toBe('ESHUTDOWN');
      expect(await errnoOf(disk.writeZeroes(0, aligned(1)))).toBe('ESHUTDOWN');
    });
  });
}
