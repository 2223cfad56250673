/** The Linux kernel's own hosts, nvme-rdma and nvme-tcp, at `rocev2 nvme target`; its target, nvmet, under our host. All in one guest. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parseMarkdown } from '../../../test/docs/markdown.js';
import { describeWithRig } from '../../../test/interop/support/describe-on-rig.js';
import { casesOfRound } from '../../../test/support/rounds.js';
import { testChanges } from './kernel-changes.js';
import { COMPLAINTS, connect, KernelGuest, NQN } from './kernel-guest.js';
import { testNvmet } from './kernel-nvmet.js';

const GUIDE = fileURLToPath(new URL('../docs/nvme.md', import.meta.url));
/** The address of the target in the guide. */
const GUIDE_ADDRESS = '192.0.2.7';
const TRANSPORTS = ['rdma', 'tcp'] as const;
/** A file system is made and mounted, keeps what is written, and checks clean. */
const FILE_SYSTEM = [
  'mkfs.ext4 -q /dev/nvme0n1',
  'mount -t ext4 /dev/nvme0n1 /mnt',
  'dd if=/dev/urandom of=/mnt/file bs=64k count=40 2> /dev/null',
  'sha256sum /mnt/file > /tmp/sum',
  'umount /mnt',
  'e2fsck -fn /dev/nvme0n1',
  'echo 3 > /proc/sys/vm/drop_caches',
  'mount -t ext4 /dev/nvme0n1 /mnt',
  'sha256sum -c /tmp/sum',
  'rm /mnt/file',
  'sync',
  'fstrim -v /mnt',
  'umount /mnt',
];

await describeWithRig('rocev2 nvme target', {}, (rig) => {
  const guest = new KernelGuest(rig);
  const inGuest = (...lines: readonly string[]) => guest.run(...lines);

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

        await guest.startTarget(['--disk', 'memory', '--size', '64MiB', '--bind', guest.host6]);
        expect(await inGuest(`nvme discover -t ${transport} -a ${guest.host6} -s 4420`)).toContain(`subnqn:  ${NQN}`);
        const over6 = [
          connect(transport, guest.host6),
          'nvme list',
          'nvme id-ctrl /dev/nvme0',
          'nvme smart-log /dev/nvme0',
        ];
        expect(await inGuest(...over6)).toMatch(/nvme0n1 .*rocev2/);
        await inGuest('nvme disconnect-all');
      });

      test('makes, mounts, trims and checks ext4', async () => {
        const path = join(guest.folder, transport);
        await guest.startTarget(['--disk', `file:${path}`, '--size', '64MiB', '--bind', guest.host4]);
        const digests = transport === 'tcp' ? '--hdr-digest --data-digest' : '';
        const told = await inGuest(connect(transport, guest.host4, digests), ...FILE_SYSTEM);
        expect(told).toContain('/mnt/file: OK');
        expect(await inGuest('rigio /dev/nvme0n1 0 4194304 65536 4 1 2')).toContain('verified 64 blocks');
        await inGuest('blkdiscard /dev/nvme0n1', 'blkdiscard -z /dev/nvme0n1', 'cmp -n 4194304 /dev/nvme0n1 /dev/zero');
        expect(await guest.kernelLog()).not.toMatch(COMPLAINTS);
      });
    });
  }

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
