/**
 * Programs on a mounted file system while RDMA breaks and the storage server is killed, again and again: nothing of it reaches them. A short run here; ten
 * minutes, with PostgreSQL, by `npm run test:disk-outages`.
 */

import { expect, test } from 'vitest';
import { NbdDevice } from '../../src/storage-rpc/nbd/nbd-device.js';
import { FILES_MIB, MOUNTED_PROGRAMS } from './support/mounted-programs.js';
import { describeStack, gatewayToServer } from './support/stack.js';
import { mountRefusal } from './support/tools.js';

const SECONDS = Number(process.env['OUTAGE_SECONDS'] ?? 25);
const HAS_DATABASE = process.env['OUTAGE_DATABASE'] !== undefined;
/** In ten minutes RDMA breaks every 10 s and the server dies every 30 s. */
const BREAK_MS = SECONDS < 60 ? 3_000 : 10_000;
const KILL_MS = SECONDS < 60 ? 8_000 : 30_000;
const DISK_BYTES = 1 << 30;
/** Setting up a database and checking it takes its time on a busy machine. */
const LIMIT_MS = (SECONDS + 600) * 1000;

/** Writes and flushes a block behind the file system, again and again; the longest time that took. */
async function longestWaitMs(device: NbdDevice, isOver: () => boolean): Promise<number> {
  let longest = 0;
  for (let n = 0; !isOver(); n++) {
    const startMs = performance.now();
    await device.write(FILES_MIB << 20, Buffer.alloc(4096, n));
    await device.flush();
    longest = Math.max(longest, performance.now() - startMs);
    await new Promise((resolve) => setTimeout(resolve, 100)); // timer: how often the disk is looked at
  }
  await device.close();
  return Math.round(longest);
}

const refusal = mountRefusal();
if (refusal !== undefined) console.warn(`skipped: outages under a mounted file system: ${refusal}`);

describeStack('outages', gatewayToServer(DISK_BYTES, undefined, '--hold-down', '10ms'), (stack) => {
  test.skipIf(refusal !== undefined)(
    `${SECONDS} s with RDMA broken every ${BREAK_MS / 1000} s and the server killed every ${KILL_MS / 1000} s: no error, all checks clean`,
    async () => {
      const { gateway } = stack();
      let isOver = false;
      const restartsMs: number[] = [];
      const watched = longestWaitMs(await NbdDevice.open(stack().uri), () => isOver);
      const breaking = setInterval(() => gateway.kill('SIGUSR2'), BREAK_MS); // timer: how often RDMA breaks
      const killing = (async () => {
        while (!isOver) {
          await new Promise((resolve) => setTimeout(resolve, KILL_MS)); // timer: the life of a server
          if (isOver) return;
          const startMs = performance.now();
          await stack().killFirst();
          restartsMs.push(Math.round(performance.now() - startMs));
        }
      })();
      let output: string;
      try {
        output = await stack().succeeds(
          `export RUN_SECONDS=${SECONDS} OUTAGE_DATABASE=${HAS_DATABASE ? 1 : ''}\n${MOUNTED_PROGRAMS}`,
          LIMIT_MS,
        );
      } finally {
        clearInterval(breaking);
        isOver = true;
      }
      await killing;
      const diskMs = await watched;
      const [, document] = await stack().documents();
      const { storage } = document as { storage: Record<string, number> };
      const { failovers, serverRestarts, resentRequests, outages } = storage;
      console.log(output.split('\n').slice(-40).join('\n'));
      console.log({ failovers, serverRestarts, resentRequests, outages, restartsMs, longestWaitOfDiskMs: diskMs });
      expect(storage).toMatchObject({ crcMismatches: 0 });
      expect(failovers).toBeGreaterThanOrEqual(1);
      expect(serverRestarts).toBeGreaterThanOrEqual(1);
    },
    LIMIT_MS,
  );
});
