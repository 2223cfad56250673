/** `rocev2 nvme target` under the Linux kernel's own hosts, nvme-rdma and nvme-tcp, in a guest. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { parseMarkdown } from '../docs/markdown.js';
import type { RunningCommand } from '../interop/support/command.js';
import { describeWithRig } from '../interop/support/describe-on-rig.js';
import { saysOnStderr, startRocev2 } from '../interop/support/rocev2.js';

const NQN = 'nqn.2026-11.rocev2:disk';
const GUIDE = fileURLToPath(new URL('../../docs/nvme.md', import.meta.url));
/** The address of the target in the guide. */
const GUIDE_ADDRESS = '192.0.2.7';
/** The kernel says one of these where an answer is not what it has to be. */
const COMPLAINTS = /bogus|unsupported|invalid|mismatch|identifiers changed|error recovery|I\/O error|I\/O Cmd/i;
/** The emulated guest is slow, and so is a busy machine. */
const PATIENCE_MS = 200_000;

await describeWithRig('rocev2 nvme target', {}, (rig) => {
  const folder = mkdtempSync(join(tmpdir(), 'rocev2-nvme-'));
  beforeAll(async () => {
    await inGuest('modprobe nvme-rdma', 'modprobe nvme-tcp', 'dmesg -c > /dev/null');
  });
  afterAll(() => rmSync(folder, { recursive: true }));
  const host4 = () => rig().hostSide.ip4;
  const host6 = () => rig().hostSide.ip6;

  let targets: RunningCommand[] = [];

  async function startTarget(args: readonly string[]): Promise<RunningCommand> {
    const target = startRocev2(rig(), ['nvme', 'target', ...args]);
    targets.push(target);
    await saysOnStderr(target, 'Ctrl-C ends it');
    return target;
  }

  /** Runs commands in the guest; each must succeed. */
  async function inGuest(...lines: readonly string[]): Promise<string> {
    const { exitCode, stdout, stderr } = await rig().exec(`set -e\n${lines.join('\n')}`, { timeoutMs: PATIENCE_MS });
    if (exitCode !== 0) throw new Error(`exit code ${exitCode}\n${stdout}${stderr}`);
    return stdout;
  }

  const connect = (transport: string, address: string, more = '') =>
    `nvme connect -t ${transport} -a ${address} -s 4420 -n ${NQN} ${more}\nuntil [ -b /dev/nvme0n1 ]; do usleep 50000; done`;
  const kernelLog = () => inGuest('dmesg');

  afterEach(async () => {
    // The host goes first: it would try to reconnect to a target that is gone.
    await rig().exec('umount /mnt; nvme disconnect-all; dmesg -c > /dev/null');
    for (const target of targets) await target.stop();
    targets = [];
  });

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

  for (const transport of ['rdma', 'tcp'] as const) {
    describe(`nvme-${transport}`, () => {
      test('discovers, connects, and tells what there is; again with more queues', async () => {
        const target = await startTarget(['--disk', 'memory', '--size', '64MiB', '--bind', host4()]);
        const found = await inGuest(`nvme discover -t ${transport} -a ${host4()} -s 4420`);
        expect(found).toMatch(/trtype: +rdma[\s\S]*trtype: +tcp/);
        expect(found).toContain(`subnqn:  ${NQN}`);
        const told = await inGuest(
          connect(transport, host4()),
          'nvme list',
          'nvme id-ctrl /dev/nvme0',
          'nvme id-ns /dev/nvme0n1',
          'nvme smart-log /dev/nvme0',
          'nvme effects-log /dev/nvme0 > /dev/null',
          'nvme error-log /dev/nvme0 > /dev/null',
        );
        expect(told).toMatch(/nvme0n1 .*rocev2/);
        expect(told).toContain('temperature				: 27');
        await inGuest('nvme disconnect-all', connect(transport, host4(), '-Q 128 -i 4'));
        expect(await inGuest('rigio /dev/nvme0n1 0 524288 4096 4 1 1')).toContain('verified 128 blocks');
        expect(await kernelLog()).not.toMatch(COMPLAINTS);
        await inGuest('nvme disconnect-all');
        expect((await target.stop('SIGINT')).exitCode).toBe(0);
      });

      test('makes, mounts, trims and checks ext4', async () => {
        const path = join(folder, transport);
        await startTarget(['--disk', `file:${path}`, '--size', '64MiB', '--bind', host4()]);
        const digests = transport === 'tcp' ? '--hdr-digest --data-digest' : '';
        const told = await inGuest(
          connect(transport, host4(), digests),
          ...fileSystem('ext4', 'e2fsck -fn /dev/nvme0n1'),
        );
        expect(told).toContain('/mnt/file: OK');
        expect(await inGuest('rigio /dev/nvme0n1 0 4194304 65536 4 1 2')).toContain('verified 64 blocks');
        await inGuest('blkdiscard /dev/nvme0n1', 'blkdiscard -z /dev/nvme0n1', 'cmp -n 4194304 /dev/nvme0n1 /dev/zero');
        expect(await kernelLog()).not.toMatch(COMPLAINTS);
      });

      test('reconnects to a target that was killed under I/O, and every block is right', async () => {
        const disk = ['--disk', `file:${join(folder, `${transport}-killed`)}`, '--size', '64MiB', '--bind', host4()];
        const first = await startTarget(disk);
        await inGuest(connect(transport, host4(), '--reconnect-delay=1 --keep-alive-tmo=3'));
        const io = await rig().background('io', 'rigio /dev/nvme0n1 0 2097152 4096 4 2 3');
        // The path to the controller has counters, the multipath device has none; the fifth are writes.
        await inGuest(
          "until awk '$5 > 50 { begun = 1 } END { exit !begun }' /sys/block/nvme0c*n1/stat; do usleep 50000; done",
        );
        process.kill(first.pid!, 'SIGKILL');
        await first.wait();
        await startTarget(disk);
        const { exitCode, stdout, stderr } = await io.wait(PATIENCE_MS);
        expect(stderr).toBe('');
        expect(stdout).toContain('verified 512 blocks');
        expect(exitCode).toBe(0);
      });
    });
  }

  test('xfs over IPv6, on a target that loses one packet in a thousand', async () => {
    const faults = ['--loss', 'random=0.001', '--seed', '7', '--transport', 'rdma'];
    await startTarget(['--disk', 'memory', '--size', '400MiB', '--bind', host6(), ...faults]);
    const check = 'xfs_repair -n /dev/nvme0n1 2> /dev/null';
    expect(await inGuest(connect('rdma', host6()), ...fileSystem('xfs', check))).toContain('/mnt/file: OK');
  });

  test('small blocks, on a target that loses one packet in a hundred', async () => {
    const faults = ['--loss', 'random=0.01', '--seed', '7', '--transport', 'rdma'];
    await startTarget(['--disk', 'memory', '--size', '64MiB', '--bind', host4(), ...faults]);
    const io = 'rigio /dev/nvme0n1 0 262144 4096 4 1 4';
    expect(await inGuest(connect('rdma', host4()), io)).toContain('verified 64 blocks');
  });

  test('a host that may not connect, and a name that there is not, are refused', async () => {
    const nobody = 'nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-00000000ffff';
    await startTarget(['--disk', 'memory', '--size', '1MiB', '--bind', host4(), '--host', nobody]);
    for (const transport of ['rdma', 'tcp']) {
      const { exitCode } = await rig().exec(`nvme connect -t ${transport} -a ${host4()} -s 4420 -n ${NQN}`);
      expect(exitCode).not.toBe(0);
      expect(
        (await rig().exec(`nvme connect -t ${transport} -a ${host4()} -s 4420 -n ${NQN}x -q ${nobody}`)).exitCode,
      ).not.toBe(0);
      await inGuest(`nvme connect -t ${transport} -a ${host4()} -s 4420 -n ${NQN} -q ${nobody}`, 'nvme disconnect-all');
    }
    expect(await kernelLog()).toMatch(/invalid parameter|not allowed/i);
  });

  test('the guide goes from nothing to a mounted file system', async () => {
    const [atTarget, atHost] = parseMarkdown(readFileSync(GUIDE, 'utf8')).blocks.map((block) =>
      block.replaceAll(GUIDE_ADDRESS, host4()),
    );
    const words = atTarget.trim().split(/\s+/);
    await startTarget(words.slice(words.indexOf('target') + 1));
    expect(await inGuest(atHost)).toContain('/dev/nvme0n1');
  });
});
