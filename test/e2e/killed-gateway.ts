/**
 * An NBD server that is killed with 64 writes under way, again and again: whatever was acknowledged is there the next time, and every block is one
 * that was written.
 */

import { expect } from 'vitest';
import { NbdDevice } from '../../src/storage-rpc/nbd/nbd-device.js';
import type { Program } from './executable.js';

const WRITERS = 64;
const BLOCK_BYTES = 4096;
const BLOCKS = 256;
export const KILLED_DISK_BYTES = BLOCKS * BLOCK_BYTES;

/** A block full of its stamp; stamp 0 is a block that was never written. */
export function page(stamp: number): Buffer {
  const bytes = Buffer.alloc(BLOCK_BYTES, stamp % 251);
  bytes.writeUInt32LE(stamp);
  return stamp === 0 ? Buffer.alloc(BLOCK_BYTES) : bytes;
}

/** `start` gives the program and the URI of its export. Returns how many writes were asked for. */
export async function killAgainAndAgain(
  rounds: number,
  start: () => Promise<{ program: Program; uri: string }>,
): Promise<number> {
  /** By block: the stamp acknowledged last, and those asked for since. */
  const acknowledged = new Array<number>(BLOCKS).fill(0);
  const asked = Array.from({ length: BLOCKS }, () => new Set<number>());
  let stamp = 1;
  for (let round = 0; round < rounds; round++) {
    const { program, uri } = await start();
    const device = await NbdDevice.open(uri);
    const read = Buffer.alloc(KILLED_DISK_BYTES);
    await device.read(0, read.length, read);
    for (let block = 0; block < BLOCKS; block++) {
      const bytes = read.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
      const found = bytes.readUInt32LE();
      expect(bytes.equals(page(found)), `round ${round}, block ${block} is torn`).toBe(true);
      expect([acknowledged[block], ...asked[block]], `round ${round}, block ${block}`).toContain(found);
      acknowledged[block] = found;
      asked[block].clear();
    }
    const writers = Array.from({ length: WRITERS }, async (_, writer) => {
      for (let n = 0; ; n++) {
        const block = (writer + WRITERS * n) % BLOCKS;
        const mine = stamp++;
        asked[block].add(mine);
        await device.write(block * BLOCK_BYTES, page(mine), { fua: n % 8 === 0 });
        acknowledged[block] = mine;
        asked[block].delete(mine);
        if (writer === 0 && n === 2 + 4 * (round % 8)) program.kill('SIGKILL');
      }
    });
    await Promise.allSettled(writers); // Each ends with the connection.
    await device.close();
    expect(await program.ended()).toBe('SIGKILL');
  }
  return stamp;
}
