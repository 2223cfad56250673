/** fio, file systems and the recipes of blktests (tests/nvme) on disks of our target: the kernel as host, with packets of 4 KiB. */

import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { describeWithRig } from '../../../test/interop/support/describe-on-rig.js';
import { casesOfRound } from '../../../test/support/rounds.js';
import { ALL_SIZES, enough, fioInFolder, fioOnDevice, fioUntilEnough, SMALL_SIZES, TRIM } from './kernel-fio.js';
import { COMPLAINTS, connect, KernelGuest, PATIENCE_MS, until } from './kernel-guest.js';

const DISK = '/dev/nvme0n1';
const SOON = '--reconnect-delay=1 --keep-alive-tmo=3';
const FILE_SYSTEMS = {
  ext4: { make: 'mkfs.ext4 -q', check: 'e2fsck -fn' },
  xfs: { make: 'mkfs.xfs -q', check: 'xfs_repair -n' },
} as const;
const CASES = [
  { transport: 'rdma', loss: '0', family: 6, type: 'xfs', jobs: ALL_SIZES },
  { transport: 'rdma', loss: '0.01', family: 4, type: 'ext4', jobs: SMALL_SIZES },
  { transport: 'rdma', loss: '0.001', family: 4, type: 'ext4', jobs: ALL_SIZES },
  { transport: 'tcp', loss: '0', family: 6, type: 'ext4', jobs: ALL_SIZES },
] as const;

await describeWithRig('rocev2 nvme target under fio', { mtu: 4200 }, (rig) => {
  const guest = new KernelGuest(rig);
  const stateIs = (state: string) => until(`[ "$(cat /sys/class/nvme/nvme0/state)" = ${state} ]`);

  // blktests nvme/010 (a device) and nvme/012 (a file system), with trims and flushes.
  test.each(casesOfRound(CASES))('$transport over IPv$family, loss $loss: device, $type, check', async (given) => {
    const { transport, loss, family, type, jobs } = given;
    const address = family === 4 ? guest.host4 : guest.host6;
    const faults = loss === '0' ? [] : ['--loss', `random=${loss}`, '--seed', '7'];
    await guest.startTarget(['--disk', 'memory', '--size', '400MiB', '--bind', address, ...faults]);
    const { make, check } = FILE_SYSTEMS[type];
    await guest.run(
      // When Soft-RoCE sends a registration again behind a lost packet, it refuses it ("mr->lkey not free"): the queue has to be made anew.
      `echo ${loss === '0' ? 30 : 5} > /sys/module/nvme_core/parameters/io_timeout`,
      connect(transport, address, loss === '0' ? '-Q 128 -i 4' : SOON),
      fioOnDevice(DISK, [...jobs, TRIM]),
      `${make} -${type === 'xfs' ? 'f' : 'F'} ${DISK}`,
      `mount -t ${type} ${DISK} /mnt`,
      fioInFolder('/mnt', jobs),
      'rm /mnt/*.0',
      'fstrim /mnt',
      'umount /mnt',
      `${check} ${DISK} 2> /dev/null`,
    );
    if (loss === '0') expect(await guest.kernelLog()).not.toMatch(COMPLAINTS);
  });

  // In this order each round has RDMA, here or above: its packets are audited.
  for (const transport of casesOfRound(['tcp', 'rdma'] as const)) {
    describe(`recipes of blktests over ${transport}`, () => {
      const disk = () => ['--disk', `file:${join(guest.folder, transport)}`, '--size', '64MiB', '--bind', guest.host4];

      test('nvme/014, 018, 019, 021, 023: flush, beyond the end, deallocate, list, SMART', async () => {
        await guest.startTarget(disk());
        await guest.run(connect(transport, guest.host4));
        await guest.run(`dd if=/dev/urandom of=${DISK} bs=64k count=32 2> /dev/null`, `nvme flush ${DISK} -n 1`);

        const blocks = Number(await guest.run(`blockdev --getsz ${DISK}`));
        const read = (first: number) =>
          guest.tryIn(1, `nvme read ${DISK} --start-block=${first} --block-count=0 --data-size=512 --data=/tmp/read`);
        expect((await read(blocks - 1)).exitCode).toBe(0);
        const beyond = await read(blocks);
        expect(beyond.exitCode).not.toBe(0);
        expect(beyond.said).toMatch(/LBA out of range|LBA_RANGE/i);

        await guest.run(
          `nvme dsm ${DISK} --namespace-id=1 --ad --slbs=0,1024 --blocks=256,256`,
          `cmp -n 131072 ${DISK} /dev/zero`,
        );
        expect(await guest.run('nvme list')).toMatch(/nvme0n1 .*rocev2/);
        expect(await guest.run(`nvme smart-log ${DISK}`)).toMatch(/critical_warning\s*: 0\n[\s\S]*data units written/i);
      });

      test('nvme/040: the controller is reset under fio, which sees no error', async () => {
        await guest.startTarget(disk());
        await guest.run(connect(transport, guest.host4));
        const io = await guest.beginIo(fioUntilEnough(DISK, SMALL_SIZES));
        await guest.run('nvme reset /dev/nvme0', stateIs('live'), 'nvme reset /dev/nvme0', stateIs('live'), enough);
        expect(await io.wait(PATIENCE_MS)).toMatchObject({ exitCode: 0, stderr: '' });
      });

      test('nvme/061: the target goes and comes back under fio, by Ctrl-C and by SIGKILL', async () => {
        let target = await guest.startTarget(disk());
        await guest.run(connect(transport, guest.host4, SOON));
        const io = await guest.beginIo(fioUntilEnough(DISK, SMALL_SIZES));
        for (const signal of ['SIGINT', 'SIGKILL'] as const) {
          process.kill(target.pid!, signal);
          await target.wait();
          await guest.run(stateIs('connecting'));
          target = await guest.startTarget(disk());
          await guest.run(stateIs('live'));
        }
        await guest.run(enough);
        expect(await io.wait(PATIENCE_MS)).toMatchObject({ exitCode: 0, stderr: '' });
      });
    });
  }
});
