/**
 * Large blocks while one packet in a hundred is lost, with a newer Linux kernel as host. It takes long, so that one round of five has it.
 */

import { describe, expect, test } from 'vitest';
import { describeWithRig } from '../../../test/interop/support/describe-on-rig.js';
import { isTurn, ROUNDS } from '../../../test/support/rounds.js';
import { ALL_SIZES, fioInFolder, fioOnDevice } from './kernel-fio.js';
import { connect, KernelGuest } from './kernel-guest.js';

const TITLE = 'rocev2 nvme target under fio with a loss of 1 %';
const DISK = '/dev/nvme0n1';

if (isTurn(2, ROUNDS)) {
  await describeWithRig(TITLE, { mtu: 4200, kernel: 'backports' }, (rig) => {
    const guest = new KernelGuest(rig);

    test('blocks of 4 KiB to 1 MiB over RDMA: device, ext4, check', async () => {
      const target = await guest.startTarget([
        ...['--disk', 'memory', '--size', '400MiB', '--bind', guest.host4],
        ...['--loss', 'random=0.01', '--seed', '7', '--json'],
      ]);
      await guest.run(
        'echo 5 > /sys/module/nvme_core/parameters/io_timeout',
        connect('rdma', guest.host4, '--reconnect-delay=1 --keep-alive-tmo=3'),
        fioOnDevice(DISK, ALL_SIZES),
        `mkfs.ext4 -q -F ${DISK}`,
        `mount -t ext4 ${DISK} /mnt`,
        fioInFolder('/mnt', ALL_SIZES),
        'umount /mnt',
        `e2fsck -fn ${DISK} 2> /dev/null`,
        'nvme disconnect-all',
      );
      expect((await target.stop('SIGINT')).exitCode).toBe(0);
      const { duplicate_request, out_of_seq_request, rcvd_seq_err } = await rig().counters();
      expect(duplicate_request + out_of_seq_request + rcvd_seq_err, 'packets were lost').toBeGreaterThan(0);
    });
  });
} else describe.skip(TITLE, () => test('in another round', () => {}));
