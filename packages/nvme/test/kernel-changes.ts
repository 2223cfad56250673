/** A target that changes, is suspended, fails commands or loses a path while the kernel uses it. */

import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startRocev2 } from '../../../test/interop/support/rocev2.js';
import { isTurn } from '../../../test/support/rounds.js';
import { enough, fioUntilEnough, SMALL_SIZES } from './kernel-fio.js';
import { connect, type KernelGuest, NQN, PATIENCE_MS, until } from './kernel-guest.js';

/** So that a dead path is noticed soon, and left and found again. */
const SOON = '--reconnect-delay=1 --keep-alive-tmo=3';
const STANDSTILL_MS = 30_000;
const RDMA_PATH = '/sys/block/nvme0c0n1';
const TCP_PATH = '/sys/block/nvme0c1n1';

export function testChanges(guest: KernelGuest): void {
  const control = () => join(guest.folder, 'control.sock');
  const change = async (...words: string[]) => {
    const { exitCode, stderr } = await startRocev2(guest.rig(), [
      'nvme',
      words[0],
      control(),
      ...words.slice(1),
    ]).wait();
    expect({ exitCode, stderr }, words.join(' ')).toEqual({ exitCode: 0, stderr: '' });
  };
  const start = (...more: string[]) =>
    guest.startTarget([
      ...['--disk', 'memory', '--size', '64MiB', '--bind', guest.host4, '--control', control()],
      ...more,
    ]);
  const bothPaths = () => [
    connect('rdma', guest.host4, SOON),
    `nvme connect -t tcp -a ${guest.host4} -s 4420 -n ${NQN} ${SOON}`,
    until(`grep -q optimized ${RDMA_PATH}/ana_state && grep -q optimized ${TCP_PATH}/ana_state`),
  ];
  const writesOver = async (path: string) => Number((await guest.run(`awk '{ print $5 }' ${path}/stat`)).trim());
  /** Resolves when some more writes went over a path. */
  const moreWritesOver = async (path: string) => {
    const before = await writesOver(path);
    await guest.run(until(`awk '$5 > ${before} + 20 { begun = 1 } END { exit !begun }' ${path}/stat`));
  };
  const fio = () => fioUntilEnough('/dev/nvme0n1', SMALL_SIZES);
  const endsWell = async (io: { wait(timeoutMs: number): Promise<unknown> }) => {
    await guest.run(enough);
    expect(await io.wait(PATIENCE_MS)).toMatchObject({ exitCode: 0, stderr: '' });
  };

  test('a disk that grows, a namespace that comes, and one that goes', async () => {
    await start();
    await guest.run(connect('rdma', guest.host4));
    expect(await guest.run('blockdev --getsize64 /dev/nvme0n1')).toBe('67108864\n');
    await change('resize', 'disk', '1', '128MiB');
    await guest.run(until('[ $(blockdev --getsize64 /dev/nvme0n1) = 134217728 ]'));
    await change('add', 'memory', '32MiB');
    await guest.run(until('[ -b /dev/nvme0n2 ]'), 'rigio /dev/nvme0n2 0 262144 4096 4 1 5');
    await change('remove', 'disk', '2');
    await guest.run(until('[ ! -b /dev/nvme0n2 ]'));
    // What has come with the new size can be written.
    expect(await guest.run('rigio /dev/nvme0n1 133955584 262144 4096 4 1 6')).toBe('verified 64 blocks\n');
  });

  /** Those that take long: one each round. */
  const inTurn = (place: number) => test.runIf(isTurn(place, 3));

  describe('multipath', () => {
    inTurn(0)('leaves RDMA for TCP when its port becomes inaccessible, and TCP for RDMA', async () => {
      await start();
      await guest.run(...bothPaths());
      await change('ana', 'rdma', guest.host4, 'inaccessible');
      await guest.run(until(`grep -q inaccessible ${RDMA_PATH}/ana_state`));
      const rdma = await writesOver(RDMA_PATH);
      const io = await guest.rig().background('io', fio());
      await moreWritesOver(TCP_PATH);
      expect(await writesOver(RDMA_PATH)).toBe(rdma);
      await change('ana', 'rdma', guest.host4, 'optimized');
      await change('ana', 'tcp', guest.host4, 'inaccessible');
      await guest.run(until(`grep -q inaccessible ${TCP_PATH}/ana_state`));
      await moreWritesOver(RDMA_PATH); // What was under way over TCP has ended then.
      const tcp = await writesOver(TCP_PATH);
      await moreWritesOver(RDMA_PATH);
      expect(await writesOver(TCP_PATH)).toBe(tcp);
      await endsWell(io);
    });

    inTurn(1)('leaves RDMA for TCP when no packet of RDMA passes any more, and finds it again', async () => {
      await start();
      await guest.run(...bothPaths());
      const io = await guest.beginIo(fio());
      const loss = await guest.rig().loss({ every: 1 });
      try {
        await guest.run(until('dmesg | grep -q "nvme nvme0: starting error recovery"'));
        await moreWritesOver(TCP_PATH);
        await endsWell(io);
      } finally {
        expect(await loss.stop()).toBeGreaterThan(0);
      }
      await guest.run(until('[ "$(cat /sys/class/nvme/nvme0/state)" = live ]'));
    });
  });

  inTurn(2)('a target that is suspended for 30 s costs time, and no error', async () => {
    const target = await start();
    await guest.run(connect('rdma', guest.host4, SOON));
    const io = await guest.beginIo(fio());
    process.kill(target.pid!, 'SIGSTOP');
    try {
      await new Promise((go) => setTimeout(go, STANDSTILL_MS)); // timer: what is tested is a target that is suspended for so long
      expect(await guest.kernelLog()).toContain('Reconnecting in 1 seconds');
    } finally {
      process.kill(target.pid!, 'SIGCONT');
    }
    await guest.run(until('[ "$(cat /sys/class/nvme/nvme0/state)" = live ]'));
    await endsWell(io);
  });

  test('writes that fail by rule are errors of the disk, and no others', async () => {
    await start('--fault', 'opcode=write:lba=8-15:status=0x280,dnr');
    await guest.run(connect('tcp', guest.host4));
    const write = (block: number) =>
      guest.tryIn(1, `dd if=/dev/zero of=/dev/nvme0n1 bs=4k count=1 seek=${block} oflag=direct`);
    expect([(await write(0)).exitCode, (await write(1)).exitCode, (await write(2)).exitCode]).toEqual([0, 1, 0]);
  });
}
