/**
 * Programs on a mounted file system while RDMA breaks and the storage server is killed, again and again: nothing of it reaches them. A short run here; ten
 * minutes, with PostgreSQL, by `npm run test:disk-outages`.
 */

import { expect, test } from 'vitest';
import { NbdDevice } from '../../src/storage-rpc/nbd/nbd-device.js';
import { describeStack, gatewayToServer } from './support/stack.js';
import { mountRefusal } from './support/tools.js';

const SECONDS = Number(process.env['OUTAGE_SECONDS'] ?? 25);
const HAS_DATABASE = process.env['OUTAGE_DATABASE'] !== undefined;
/** In ten minutes RDMA breaks every 10 s and the server dies every 30 s. */
const BREAK_MS = SECONDS < 60 ? 3_000 : 10_000;
const KILL_MS = SECONDS < 60 ? 8_000 : 30_000;
const DISK_BYTES = 1 << 30;
/** The file system leaves a place behind it where the disk itself is watched. */
const FILES_MIB = 1000;
/** Setting up a database and checking it takes its time on a busy machine. */
const LIMIT_MS = (SECONDS + 600) * 1000;

/** Runs beside the file system; leaves the longest wait for one transaction, in ms, in `stall-database`. */
const DATABASE = `
  bin=$(echo /usr/lib/postgresql/*/bin); as="runuser -u postgres --"
  chmod 711 "$PWD"; mkdir -p fs/pg sock log; chown postgres fs/pg sock log
  $as $bin/initdb --data-checksums -D fs/pg > initdb.log
  $as $bin/pg_ctl -w -D fs/pg -o "-k $PWD/sock -c listen_addresses=" -l "$PWD/log/server" start > /dev/null
  trap '$as $bin/pg_ctl -D fs/pg -m immediate stop || true' EXIT
  cd log
  $as $bin/pgbench -h "$PWD/../sock" -i -s 5 -q postgres 2> /dev/null
  $as $bin/pgbench -h "$PWD/../sock" -c 4 -T $RUN_SECONDS -l --log-prefix=transactions postgres > pgbench.out
  cat pgbench.out; grep -q 'failed transactions: 0 ' pgbench.out
  cat transactions* | awk '{ if ($3 > max) max = $3 } END { printf "%d", max / 1000 }' > ../stall-database
  cd ..; $as $bin/pg_ctl -w -D fs/pg stop > /dev/null; trap - EXIT
  $as $bin/pg_checksums --check -D fs/pg`;

/** Everything in a mount namespace of its own; leaves the longest wait for one request of fio, in ms, in `stall-files`. */
const SCRIPT = `unshare --mount --propagation private bash -eu -o pipefail <<'MOUNTED'
  mkdir -p m fs
  nbdfuse m/nbd "$U" & fuse=$!
  loop=
  trap '[ -z "$loop" ] || losetup -d $loop' EXIT
  for i in $(seq 100); do [ -e m/nbd ] && break; sleep 0.1; done # timer: asks again
  loop=$(losetup -f --show m/nbd)
  mkfs.ext4 -q -F $loop ${FILES_MIB}M; mount $loop fs
  touch mounted
  if [ -n "$OUTAGE_DATABASE" ]; then (${DATABASE.replaceAll('\n', '\n    ')}
  ) & database=$!; fi
  fio --name=f --directory=fs --rw=randrw --bs=4k --size=32m --ioengine=psync --direct=1 --fsync=32 --rate_iops=200 --verify=crc32c \
    --verify_fatal=1 --verify_backlog=256 --time_based --runtime=$RUN_SECONDS --output-format=json --output=fio.json
  python3 -c 'import json; j = json.load(open("fio.json"))["jobs"][0]; print(int(max(j[k]["lat_ns"]["max"] for k in ("read", "write", "sync")) / 1e6), end="")' > stall-files
  if [ -n "$OUTAGE_DATABASE" ]; then wait $database; fi
  sync; umount fs; e2fsck -fn $loop; losetup -d $loop; loop=
  for i in $(seq 300); do umount m 2>/dev/null && break; sleep 0.1; done # timer: asks again
  wait $fuse
  for file in stall-*; do echo "longest wait, $file: $(cat $file) ms"; done\nMOUNTED`;

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
          `export RUN_SECONDS=${SECONDS} OUTAGE_DATABASE=${HAS_DATABASE ? 1 : ''}\n${SCRIPT}`,
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
