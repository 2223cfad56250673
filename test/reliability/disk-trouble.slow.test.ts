/** A remote disk whose store is slow, or whose file system runs full: what was acknowledged is kept, what fails says why, the others are served. */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { MemoryDevice } from '../../src/storage-rpc/disk/memory-device.js';
import { isBuilt } from '../e2e/executable.js';
import { DISK_BYTES, pattern, Rig, readIo, writeIo } from '../storage-rpc/sk/rig.js';

const SECOND = 1e9;
const WRITES = 32;
const READS = 50;

describe.each([
  ['20 s, less than a request may stay unanswered', 20, 0],
  ['50 s, more than a request may stay unanswered', 50, 1],
] as const)('a disk that takes %s for every write', (_, stallSeconds, failovers) => {
  it('fails no request and does each as asked; reads meanwhile are answered in a millisecond', async () => {
    let rig: Rig | undefined;
    class StalledWrites extends MemoryDevice {
      override async write(offset: number, data: Uint8Array): Promise<void> {
        await rig!.sleep(stallSeconds * SECOND);
        await super.write(offset, data);
      }
    }
    rig = await Rig.create({ disk: new StalledWrites(DISK_BYTES) });
    const { events } = rig.pair;
    const host = rig.host();
    const { session } = await rig.until(host.open());
    const pieces = Array.from({ length: WRITES }, (_, i) => pattern(65_536, i));
    const writes = Promise.all(pieces.map((data, i) => session.submit(writeIo(i * 65_536, data))));
    let slowestNs = 0;
    for (let i = 0; i < READS; i++) {
      const startNs = events.nowNs;
      await rig.until(session.submit(readIo(4 << 20, Buffer.alloc(4096))));
      slowestNs = Math.max(slowestNs, events.nowNs - startNs);
    }
    expect(slowestNs).toBeLessThan(1e6);
    await rig.until(writes);
    console.log(
      `slowest read ${(slowestNs / 1e3).toFixed(0)} us; writes of ${stallSeconds} s done after ${(events.nowNs / SECOND).toFixed(0)} s`,
    );
    const into = Buffer.alloc(65_536);
    for (const [i, data] of pieces.entries()) {
      await rig.until(session.submit(readIo(i * 65_536, into)));
      expect(into.equals(data)).toBe(true);
    }
    expect(host.counters.failovers).toBe(failovers);
  });
});

/** Far more than it takes; machines are busy at times. */
const LIMIT_MS = 100_000;
const FIXTURE = fileURLToPath(new URL('./fixtures/full-disk.mjs', import.meta.url));
/** A user that may mount a file system of his own. */
const mayMount = spawnSync('unshare', ['-rm', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir()]).status === 0;

describe.runIf(isBuilt && mayMount)('a file system that runs full under a remote disk', () => {
  it.each([
    ['RDMA', true],
    ['TCP', false],
  ])(
    'over %s: ENOSPC is told, what has its space can be written, nothing acknowledged is lost, and it goes on when there is room',
    (_, rdma) => {
      const folder = mkdtempSync(join(tmpdir(), 'rocev2-full-disk-'));
      try {
        const args = JSON.stringify({ folder, rdma, addresses: ['127.0.7.5', '127.0.7.6'] });
        const { stdout, stderr } = spawnSync('unshare', ['-rm', process.execPath, FIXTURE, args], {
          encoding: 'utf8',
          timeout: LIMIT_MS,
        });
        expect(stderr).toBe('');
        expect(JSON.parse(stdout)).toEqual({
          tooLarge: 'ERR_ROCE_IO',
          leftBehind: [],
          intoHole: 'ENOSPC',
          intoSpace: 'done',
          keptWhatWasAcknowledged: true,
          afterwards: 'done',
          readsAfterwards: true,
          afterReopening: true,
        });
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
    2 * LIMIT_MS,
  );
});
