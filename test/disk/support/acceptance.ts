/**
 * What a disk has to go through: the command lines people use, with what each must come to. They run one after another on one disk of
 * {@link DISK_BYTES}, which is blank at first.
 */

import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { timesOfRound } from '../../support/rounds.js';
import type { Stack } from './stack.js';
import { mountRefusal } from './tools.js';

export const DISK_BYTES = 384 << 20;
const NEGATIVE_REQUESTS = fileURLToPath(new URL('negative-requests.py', import.meta.url));

const KILLS = timesOfRound(100);

const FIO = 'fio --ioengine=nbd --uri="$U" --verify_fatal=1 --output-format=terse';

/** Verified jobs of fio, by name. */
export const FIO_JOBS = {
  v1: `${FIO} --name=v1 --rw=randrw --rwmixread=50 --bs=4k --iodepth=32 --size=32m --verify=crc32c --verify_backlog=1024 --randrepeat=0`,
  v2: `${FIO} --name=v2 --rw=write --bs=1m --iodepth=8 --size=128m --verify=crc32c --do_verify=1`,
  v3: `${FIO} --name=v3 --rw=randwrite --bsrange=512-256k --blockalign=512 --iodepth=16 --size=64m --verify=crc32c --do_verify=1`,
  v4: `${FIO} --name=v4 --rw=randwrite --bs=4k --iodepth=16 --size=16m --verify=md5 --do_verify=1 --fsync=64`,
  mj: `${FIO} --name=mj --thread --numjobs=4 --offset_increment=32m --size=32m --rw=randwrite --bs=16k --iodepth=8 --verify=crc32c --do_verify=1 --group_reporting`,
  // Trim and write race inside fio when more than one is under way.
  v6: `${FIO} --name=v6 --rw=trimwrite --bs=64k --iodepth=1 --size=16m --verify=crc32c`,
} as const;

const STATE = '--name=vs --rw=randwrite --bs=4k --iodepth=8 --size=16m --verify=crc32c --randseed=42';

/** Identity, sizes and abilities, as the tools print them. Needs a blank disk. */
export function identity(stack: () => Stack): void {
  test('nbdinfo and nbd-client find the export and what it can do', async () => {
    const info = JSON.parse(await stack().succeeds('nbdinfo --json "$U"'));
    expect(info).toMatchObject({ protocol: 'newstyle-fixed', structured: true });
    expect(info.exports[0]).toMatchObject({ 'export-size': DISK_BYTES, can_df: true, block_size_preferred: 4096 });
    await stack().succeeds(
      'for c in flush fua multi-conn zero fast-zero trim cache df structured-reply; do nbdinfo --can $c "$U"; done',
    );
    expect((await stack().run('nbdinfo --is read-only "$U"')).exitCode).toBe(2);
    expect(await stack().succeeds('nbdinfo --list "$U"')).toContain('export="disk0"');
    expect(await stack().succeeds('nbd-client -l -unix "$SOCKET"')).toContain('disk0');
    expect(await stack().succeeds('nbdinfo --map --totals "$U"')).toMatch(/100\.0%.*zero/);
  });
}

export function verifiedFio(stack: () => Stack, names: ReadonlyArray<keyof typeof FIO_JOBS>): void {
  test.each(names)('fio %s', async (name) => {
    await stack().succeeds(FIO_JOBS[name]);
  });
}

/** Patterns of qemu-io, and that a wrong one is noticed. */
export function qemuPatterns(stack: () => Stack): void {
  const io = (...commands: string[]) => `qemu-io -f raw ${commands.map((text) => `-c '${text}'`).join(' ')} "$U"`;

  test('qemu-io: patterns, zeros, discards, asynchronous writes and vectors', async () => {
    await stack().succeeds(
      io(
        'write -P 0xa5 0 1M',
        'write -P 0x5a -f 1M 64k',
        'write -z 2M 1M',
        'write -z -u 3M 1M',
        'discard 4M 1M',
        'aio_write -P 0x11 8M 64k',
        'aio_write -P 0x22 9M 64k',
        'aio_flush',
        'flush',
        'read -P 0xa5 0 1M',
        'read -P 0x5a 1M 64k',
        'read -P 0 2M 2M',
        'read -P 0x11 8M 64k',
        'read -P 0x22 9M 64k',
        'map',
      ),
    );
    await stack().succeeds(io('writev -P 7 512 512 1024 2048', 'readv -P 7 512 512 1024 2048'));
  });

  test('qemu-io: a pattern that is not there fails', async () => {
    const { exitCode, output } = await stack().run(io('read -P 0xff 0 4k'));
    expect(exitCode).toBe(1);
    expect(output).toContain('Pattern verification failed');
  });

  test('qemu-img bench: reads, writes, writes with a flush in between', async () => {
    await stack().succeeds('qemu-img bench -f raw -c 4000 -d 64 -s 4k -t none "$U"');
    await stack().succeeds('qemu-img bench -f raw -w -c 4000 -d 64 -s 8k -t none "$U"');
    await stack().succeeds('qemu-img bench -f raw -w -c 2000 -d 32 -s 4k --flush-interval=64 -t none "$U"');
  });
}

/** Whole images, there and back. */
export function copies(stack: () => Stack): void {
  test('nbdcopy: an image there and back, over four connections and over one', async () => {
    await stack().succeeds(`
      head -c 50000000 /dev/urandom > src.img; truncate -s ${DISK_BYTES} src.img
      nbdcopy --requests=64 --connections=4 --flush src.img "$U"
      nbdcopy "$U" back.img; cmp src.img back.img; rm back.img
      nbdcopy --synchronous "$U" back.img; cmp src.img back.img; rm back.img
      qemu-img compare -f raw -F raw src.img "$U"`);
  });

  test('qemu-img: to qcow2 and back', async () => {
    await stack().succeeds(`
      qemu-img convert -f raw -O qcow2 "$U" c.qcow2
      nbdkit -U - memory ${DISK_BYTES} --run "nbdcopy \\$uri '$U'"
      qemu-img convert -n -p -f qcow2 -O raw c.qcow2 "$U"
      qemu-img compare -f raw -F raw src.img "$U"; rm c.qcow2 src.img`);
  });

  test('nbdkit sparse-random: every byte and every hole comes back; another seed does not', async () => {
    const random = (seed: number) => `nbdkit -U - sparse-random ${DISK_BYTES} seed=${seed} percent=20 runlength=262144`;
    await stack().succeeds(`${random(7)} --run "nbdcopy --flush \\$uri '$U'"`);
    await stack().succeeds(`${random(7)} --run "nbdcopy '$U' \\$uri"`);
    expect((await stack().run(`${random(8)} --run "nbdcopy '$U' \\$uri"`)).exitCode).toBe(1);
  });
}

/** A file system in an image, and one that the kernel has mounted. */
export function fileSystems(stack: () => Stack): void {
  test('an ext4 image with files in it: e2fsck finds nothing, the files are the same', async () => {
    await stack().succeeds(`
      mkdir tree; for i in $(seq 40); do head -c $((i * 7001)) /dev/urandom > tree/$i; done; (cd tree; sha256sum *) > tree.sha
      mke2fs -q -t ext4 -F -d tree -b 4096 -E root_owner=0:0 fs.img 64M; truncate -s ${DISK_BYTES} fs.img
      nbdcopy --flush fs.img "$U"; nbdcopy "$U" fs2.img; e2fsck -fn fs2.img
      mkdir out; debugfs -R 'rdump / out' fs2.img; cd out; sha256sum --quiet -c ../tree.sha; cd ..; rm -r tree out fs.img fs2.img`);
  });

  const refusal = mountRefusal();
  if (refusal !== undefined) console.warn(`skipped: mounting a file system: ${refusal}`);
  test.skipIf(refusal !== undefined)(
    'a file system of the kernel on the disk, by nbdfuse and a loop device',
    async () => {
      // In a mount namespace of its own: one that another program has copied would keep the loop device for as long as that lives.
      await stack().succeeds(`unshare --mount --propagation private bash -eu -o pipefail <<'MOUNTED'
      mkdir -p m fs
      nbdfuse m/nbd "$U" & fuse=$!
      loop=
      trap '[ -z "$loop" ] || losetup -d $loop' EXIT
      for i in $(seq 100); do [ -e m/nbd ] && break; sleep 0.1; done # timer: asks again
      loop=$(losetup -f --show m/nbd)
      mkfs.ext4 -q -F $loop; mount $loop fs
      fio --name=f --directory=fs --rw=randrw --bs=4k --size=8m --ioengine=psync --direct=1 --verify=crc32c --verify_fatal=1 --output-format=terse
      fstrim -v fs; sync; umount fs; losetup -d $loop; loop=
      # The loop device lets go of the file a moment later.
      for i in $(seq 300); do umount m 2>/dev/null && break; sleep 0.1; done # timer: asks again
      if mountpoint -q m; then echo 'the loop device does not let go'; exit 1; fi
      wait $fuse
      nbdcopy "$U" f.img; e2fsck -fn f.img; rm f.img\nMOUNTED`);
    },
  );
}

/** Requests that are refused, fault filters in between, clients that are killed. */
export function hostileClients(stack: () => Stack): void {
  test('nbdsh: requests that make no sense have their errno', async () => {
    await stack().succeeds(`nbdsh -u "$U" -c "exec(open('${NEGATIVE_REQUESTS}').read())"`);
  });

  test('through nbdkit as a proxy', async () => {
    await stack().succeeds(`
      nbdkit -U - --filter=log --filter=stats nbd uri="$U" statsfile=s.txt logfile=l.txt --run \
        'qemu-io -f raw -c "write -P 1 0 64k" -c "read -P 1 0 64k" "$uri"'
      grep -q Write l.txt`);
  });

  test(`${KILLS} clients killed with 64 reads under way: the next one is served at once, nothing is left behind`, async () => {
    const { pid } = stack().gateway.process;
    const held = async () => {
      const descriptors = (await readdir(`/proc/${pid}/fd`)).length;
      const [, residentKiB] = /VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))!;
      return { descriptors, residentMiB: Number(residentKiB) / 1024 };
    };
    const kill = (times: number) =>
      stack().succeeds(`
        for i in $(seq ${times}); do
          fio --name=k --thread --ioengine=nbd --uri="$U" --rw=randread --bs=256k --iodepth=64 --size=128m --time_based --runtime=60 >/dev/null 2>&1 &
          sleep 0.$((i % 4 + 2)); kill -9 $!; wait $! || true # timer: the life of a client
          timeout 10 nbdinfo --size "$U" >/dev/null
        done`);
    await kill(3); // Buffers have then grown to what they will be.
    const before = await held();
    await kill(KILLS - 3);
    const after = await held();
    expect(after.descriptors).toBeLessThanOrEqual(before.descriptors);
    expect(after.residentMiB).toBeLessThan(before.residentMiB + 64);
  });
}

/** What was written before the disk's processes ended is there when others have taken their place. */
export function restarts(stack: () => Stack): void {
  test('fio vs: written, everything restarted, verified', async () => {
    await stack().succeeds(`${FIO} ${STATE} --do_verify=0 --verify_state_save=1 --end_fsync=1`);
    await stack().restart();
    await stack().succeeds(`${FIO} ${STATE} --verify_only=1 --verify_state_load=1`);
  });
}
