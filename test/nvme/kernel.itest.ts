/** The Linux kernel's own hosts, nvme-rdma and nvme-tcp, at `rocev2 nvme target`; its target, nvmet, under our host. All in one guest. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parseMarkdown } from '../docs/markdown.js';
import { describeWithRig } from '../interop/support/describe-on-rig.js';
import { casesOfRound } from '../support/rounds.js';
import { testChanges } from './kernel-changes.js';
import { COMPLAINTS, connect, KernelGuest, NQN, PATIENCE_MS } from './kernel-guest.js';
import { testNvmet } from './kernel-nvmet.js';

const GUIDE = fileURLToPath(new URL('../../docs/nvme.md', import.meta.url));
/** The address of the target in the guide. */
const GUIDE_ADDRESS = '192.0.2.7';
const TRANSPORTS = ['rdma', 'tcp'] as const;

await describeWithRig('rocev2 nvme target', {}, (rig) => {
  const guest = new KernelGuest(rig);
  const inGuest = (...lines: readonly string[]) => guest.run(...lines);

  /** A file system is made and mounted, keeps what is written, and checks clean. */
  const fileSystem = (type: 'ext4' | 'xfs', check: string) => [
    `mkfs.${type} -q /dev/nvme0n1`,
    `mount -t ${type} /dev/nvme0n1 /mnt`,
    'dd if=/dev/urandom of=/mnt/file bs=64k count=40 2> /dev/null',
    'sha256sum /mnt/file > /tmp/sum',
    'umount /mnt',
    check,
    'echo 3 > /proc/sys/vm/drop_caches',
    `mount -t ${type} /dev/nvme0n1 /mnt`,
    'sha256sum -c /tmp/sum',
    'rm /mnt/file',
    'sync',
    'fstrim -v /mnt',
    'umount /mnt',
  ];

  for (const transport of casesOfRound(TRANSPORTS)) {
    describe(`nvme-${transport}`, () => {
      test('discovers, connects, and tells what there is; again with more queues', async () => {
        const target = await guest.startTarget(['--disk', 'memory', '--size', '64MiB', '--bind', guest.host4]);
        const found = await inGuest(`nvme discover -t ${transport} -a ${guest.host4} -s 4420`);
        expect(found).toMatch(/trtype: +rdma[\s\S]*trtype: +tcp/);
        expect(found).toContain(`subnqn:  ${NQN}`);
        const told = await inGuest(
          connect(transport, guest.host4),
          'nvme list',
          'nvme id-ctrl /dev/nvme0',
          'nvme id-ns /dev/nvme0n1',
          'nvme smart-log /dev/nvme0',
          'nvme effects-log /dev/nvme0 > /dev/null',
          'nvme error-log /dev/nvme0 > /dev/null',
        );
        expect(told).toMatch(/nvme0n1 .*rocev2/);
        expect(told).toContain('temperature				: 27');
        await inGuest('nvme disconnect-all', connect(transport, guest.host4, '-Q 128 -i 4'));
        expect(await inGuest('rigio /dev/nvme0n1 0 524288 4096 4 1 1')).toContain('verified 128 blocks');
        expect(await guest.kernelLog()).not.toMatch(COMPLAINTS);
        await inGuest('nvme disconnect-all');
        expect((await target.stop('SIGINT')).exitCode).toBe(0);
      });

      test('makes, mounts, trims and checks ext4', async () => {
        const path = join(guest.folder, transport);
        await guest.startTarget(['--disk', `file:${path}`, '--size', '64MiB', '--bind', guest.host4]);
        const digests = transport === 'tcp' ? '--hdr-digest --data-digest' : '';
        const told = await inGuest(
          connect(transport, guest.host4, digests),
          ...fileSystem('ext4', 'e2fsck -fn /dev/nvme0n1'),
        );
        expect(told).toContain('/mnt/file: OK');
        expect(await inGuest('rigio /dev/nvme0n1 0 4194304 65536 4 1 2')).toContain('verified 64 blocks');
        await inGuest('blkdiscard /dev/nvme0n1', 'blkdiscard -z /dev/nvme0n1', 'cmp -n 4194304 /dev/nvme0n1 /dev/zero');
        expect(await guest.kernelLog()).not.toMatch(COMPLAINTS);
      });

      test('reconnects to a target that was killed under I/O, and every block is right', async () => {
        const disk = [
          '--disk',
          `file:${join(guest.folder, `${transport}-killed`)}`,
          '--size',
          '64MiB',
          '--bind',
          guest.host4,
        ];
        const first = await guest.startTarget(disk);
        await inGuest(connect(transport, guest.host4, '--reconnect-delay=1 --keep-alive-tmo=3'));
        const io = await guest.beginIo('rigio /dev/nvme0n1 0 2097152 4096 4 2 3');
        process.kill(first.pid!, 'SIGKILL');
        await first.wait();
        await guest.startTarget(disk);
        const { exitCode, stdout, stderr } = await io.wait(PATIENCE_MS);
        expect(stderr).toBe('');
        expect(stdout).toContain('verified 512 blocks');
        expect(exitCode).toBe(0);
      });
    });
  }

  test('xfs over IPv6, on a target that loses one packet in a thousand', async () => {
    const faults = ['--loss', 'random=0.001', '--seed', '7', '--transport', 'rdma'];
    await guest.startTarget(['--disk', 'memory', '--size', '400MiB', '--bind', guest.host6, ...faults]);
    const check = 'xfs_repair -n /dev/nvme0n1 2> /dev/null';
    expect(await inGuest(connect('rdma', guest.host6), ...fileSystem('xfs', check))).toContain('/mnt/file: OK');
  });

  test('small blocks, on a target that loses one packet in a hundred', async () => {
    const faults = ['--loss', 'random=0.01', '--seed', '7', '--transport', 'rdma'];
    await guest.startTarget(['--disk', 'memory', '--size', '64MiB', '--bind', guest.host4, ...faults]);
    const io = 'rigio /dev/nvme0n1 0 262144 4096 4 1 4';
    expect(await inGuest(connect('rdma', guest.host4), io)).toContain('verified 64 blocks');
  });

  test('a host that may not connect, and a name that there is not, are refused', async () => {
    const nobody = 'nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-00000000ffff';
    await guest.startTarget(['--disk', 'memory', '--size', '1MiB', '--bind', guest.host4, '--host', nobody]);
    for (const transport of ['rdma', 'tcp']) {
      const { exitCode } = await rig().exec(`nvme connect -t ${transport} -a ${guest.host4} -s 4420 -n ${NQN}`);
      expect(exitCode).not.toBe(0);
      expect(
        (await rig().exec(`nvme connect -t ${transport} -a ${guest.host4} -s 4420 -n ${NQN}x -q ${nobody}`)).exitCode,
      ).not.toBe(0);
      await inGuest(
        `nvme connect -t ${transport} -a ${guest.host4} -s 4420 -n ${NQN} -q ${nobody}`,
        'nvme disconnect-all',
      );
    }
    expect(await guest.kernelLog()).toMatch(/invalid parameter|not allowed/i);
  });

  testChanges(guest);
  testNvmet(guest);

  test('the guide goes from nothing to a mounted file system', async () => {
    const [atTarget, atHost] = parseMarkdown(readFileSync(GUIDE, 'utf8')).blocks.map((block) =>
      block.replaceAll(GUIDE_ADDRESS, guest.host4),
    );
    const words = atTarget.trim().split(/\s+/);
    await guest.startTarget(words.slice(words.indexOf('target') + 1));
    expect(await inGuest(atHost)).toContain('/dev/nvme0n1');
  });
});
