/** `rocev2 disk` as processes. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NbdDevice } from '../../src/storage-rpc/nbd/nbd-device.js';
import { isBuilt, Program } from './executable.js';

const BLOCK = 4096;
const BLOCKS = 256;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rocev2-disk-'));
});
afterEach(() => rm(folder, { recursive: true }));

async function uriOf(program: Program): Promise<string> {
  const [, uri] = await program.writes('stderr', / at (nbd\S+)\n/);
  return uri;
}

describe.skipIf(!isBuilt)('rocev2 disk nbd', () => {
  it('serves a disk until Ctrl-C, and says what it did', async () => {
    const program = Program.rocev2(
      'disk',
      'nbd',
      '--listen',
      '127.54.0.1:0',
      '--backend',
      'memory',
      '--size',
      '1MiB',
      '--json',
    );
    const device = await NbdDevice.open(await uriOf(program));
    await device.write(4096, Buffer.alloc(8192, 1));
    await device.read(0, 4096, Buffer.alloc(4096));
    await device.close();
    program.kill('SIGINT');
    expect(await program.ended(), program.stderr).toBe(0);
    expect(JSON.parse(program.stdout)).toMatchObject({
      sizeBytes: 1 << 20,
      connections: 1,
      bytesRead: 4096,
      bytesWritten: 8192,
    });
  });

  it('killed with writes under way, again and again: whatever was acknowledged is there, every block is one that was written', async () => {
    const args = ['--listen', `unix:${join(folder, 'socket')}`, '--backend', `file:${join(folder, 'disk')}`];
    /** By block: the number acknowledged last, and those asked for since. */
    const acknowledged = new Array<number>(BLOCKS).fill(0);
    const asked = Array.from({ length: BLOCKS }, () => new Set<number>());
    let stamp = 1;
    for (let round = 0; round < 6; round++) {
      const program = Program.rocev2('disk', 'nbd', ...args, '--size', `${BLOCKS * BLOCK}`);
      const device = await NbdDevice.open(await uriOf(program));
      const read = Buffer.alloc(BLOCKS * BLOCK);
      await device.read(0, read.length, read);
      for (let block = 0; block < BLOCKS; block++) {
        const bytes = read.subarray(block * BLOCK, (block + 1) * BLOCK);
        const found = bytes.readUInt32LE();
        expect(bytes.equals(page(found))).toBe(true);
        expect([acknowledged[block], ...asked[block]]).toContain(found);
        acknowledged[block] = found;
        asked[block].clear();
      }
      // 64 writers until the server is gone.
      const writers = Array.from({ length: 64 }, async (_, writer) => {
        for (let n = 0; ; n++) {
          const block = (writer + 64 * n) % BLOCKS;
          const mine = stamp++;
          asked[block].add(mine);
          await device.write(block * BLOCK, page(mine), { fua: n % 8 === 0 });
          acknowledged[block] = mine;
          asked[block].delete(mine);
          if (writer === 0 && n === 2 + 4 * round) program.kill('SIGKILL');
        }
      });
      await Promise.allSettled(writers);
      await device.close();
      expect(await program.ended()).toBe('SIGKILL');
    }
    expect(stamp).toBeGreaterThan(500);
  }, 60_000);

  it('says what is wrong with a backend, an address, a server that is not there', async () => {
    const run = async (...args: string[]) => {
      const program = Program.rocev2('disk', 'nbd', ...args);
      return [await program.ended(), program.stderr] as const;
    };
    expect(await run('--listen', '127.54.0.1:0', '--backend', 'tape')).toEqual([
      2,
      expect.stringContaining('no backend'),
    ]);
    expect(await run('--listen', 'nowhere', '--backend', 'memory')).toEqual([2, expect.stringContaining('HOST:PORT')]);
    const behind = ['--backend', 'nbd://127.54.0.1:1'];
    expect(await run('--listen', '127.54.0.1:0', ...behind)).toEqual([3, expect.stringContaining('ECONNREFUSED')]);
  });
});

function page(stamp: number): Buffer {
  const bytes = Buffer.alloc(BLOCK, stamp % 251);
  bytes.writeUInt32LE(stamp);
  return stamp === 0 ? Buffer.alloc(BLOCK) : bytes;
}
