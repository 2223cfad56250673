/** The kernel's own target, nvmet, under our host: a disk behind `rocev2 disk nbd --backend nvme+...`. */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { NbdDevice } from '../../../src/storage-rpc/nbd/nbd-device.js';
import { hasTool } from '../../../test/disk/support/tools.js';
import { startRocev2 } from '../../../test/interop/support/rocev2.js';
import { casesOfRound, seedOfRound } from '../../../test/support/rounds.js';
import { EXIT_NO_CONNECTION } from '../../command/src/exit.js';
import { ALL_SIZES, fioOverNbd, TRIM } from './kernel-fio.js';
import { type KernelGuest, PATIENCE_MS } from './kernel-guest.js';

const KERNEL_NQN = 'nqn.2026-11.example:kernel';
const NVMET = '/sys/kernel/config/nvmet';
const SUBSYSTEM = `${NVMET}/subsystems/${KERNEL_NQN}`;
/** The medium of the namespace, in the guest's memory: it can be trimmed, but not told to write zeros. */
const FILE = '/tmp/disk';
const FILE_BYTES = 16 << 20;
const PART_BYTES = 128 << 10;
const PORTS = { rdma: `${NVMET}/ports/1`, tcp: `${NVMET}/ports/2` };

/** Bytes that look like none else. */
function noise(seed: number, bytes: number): Buffer {
  const parts: Buffer[] = [];
  for (let i = 0; 64 * i < bytes; i++) parts.push(createHash('sha512').update(`${seed} ${i}`).digest());
  return Buffer.concat(parts, bytes);
}

export function testNvmet(guest: KernelGuest): void {
  describe('our host at nvmet', () => {
    const address = () => guest.rig().guests[0]!.ip4;
    const open = (port: string) => `ln -s ${SUBSYSTEM} ${port}/subsystems/`;
    const shut = (port: string) => `rm ${port}/subsystems/${KERNEL_NQN}`;

    beforeAll(async () => {
      const ports = Object.entries(PORTS).flatMap(([transport, port]) => [
        `mkdir ${port}`,
        `echo ipv4 > ${port}/addr_adrfam`,
        `echo ${transport} > ${port}/addr_trtype`,
        `echo ${address()} > ${port}/addr_traddr`,
        `echo 4420 > ${port}/addr_trsvcid`,
        open(port),
      ]);
      await guest.run(
        ...['modprobe nvmet-rdma', 'modprobe nvmet-tcp', 'mount -t configfs none /sys/kernel/config'],
        `truncate -s ${FILE_BYTES} ${FILE}`,
        ...[`mkdir ${SUBSYSTEM} ${SUBSYSTEM}/namespaces/1`, `echo 1 > ${SUBSYSTEM}/attr_allow_any_host`],
        `echo -n ${FILE} > ${SUBSYSTEM}/namespaces/1/device_path`,
        ...[`echo 1 > ${SUBSYSTEM}/namespaces/1/buffered_io`, `echo 1 > ${SUBSYSTEM}/namespaces/1/enable`],
        ...ports,
      );
    });

    for (const transport of casesOfRound(['rdma', 'tcp'] as const)) {
      test(`serves its disk over ${transport} through NBD, also when the port was shut in between`, async () => {
        const path = join(guest.folder, `nbd-${transport}.sock`);
        const backend = `nvme+${transport}://${address()}/${KERNEL_NQN}`;
        const server = await guest.start(['disk', 'nbd', '--backend', backend, '--listen', `unix:${path}`]);
        const data = noise(seedOfRound(1), FILE_BYTES / 4);
        await using disk = await NbdDevice.open(`nbd+unix:///?socket=${path}`);
        expect(disk.sizeBytes).toBe(FILE_BYTES);
        const writing: Promise<void>[] = [];
        for (let at = 0; at < data.length; at += PART_BYTES) {
          writing.push(disk.write(at, data.subarray(at, at + PART_BYTES)));
        }
        await writing[0];
        await guest.run(shut(PORTS[transport]), open(PORTS[transport]));
        await Promise.all(writing);
        await disk.trim(0, 65_536);
        await disk.writeZeroes(65_536, 65_536);
        await disk.flush();
        data.fill(0, 0, 131_072);
        const read = Buffer.alloc(data.length);
        await disk.read(0, read.length, read);
        expect(read.equals(data)).toBe(true);
        // The kernel has what we wrote, and not only gives it back.
        const sum = createHash('sha256').update(data).digest('hex');
        expect(await guest.run(`head -c ${data.length} ${FILE} | sha256sum`)).toContain(sum);
        if (hasTool('fio')) {
          await promisify(execFile)('sh', ['-c', fioOverNbd(path, [...ALL_SIZES, TRIM])], { timeout: PATIENCE_MS });
        } else console.warn('skipped: fio through NBD: there is no fio');
        expect((await server.stop('SIGINT')).exitCode).toBe(0);
      });
    }

    test('finds what it has, and is refused where it may not connect', async () => {
      const ask = (...words: string[]) => startRocev2(guest.rig(), ['nvme', ...words]).wait();
      for (const transport of ['rdma', 'tcp']) {
        expect((await ask('discover', address(), '--transport', transport)).stdout).toContain(KERNEL_NQN);
        const identity = await ask('id-ctrl', address(), '--nqn', KERNEL_NQN, '--transport', transport);
        expect(identity.stdout).toMatch(/model +Linux/);
      }
      const plan = ['-D', '100ms', '--reps', '1', '--blocks', '4KiB', '--depths', '2', '--ops', 'randwrite', '--json'];
      const { exitCode, stdout, stderr } = await ask('bench', address(), '--nqn', KERNEL_NQN, ...plan);
      expect(exitCode, stderr).toBe(0);
      const rows = JSON.parse(stdout).rows as Array<{ transport: string; iops: number }>;
      expect(rows.map(({ transport, iops }) => [transport, iops > 0])).toEqual([
        ['rdma', true],
        ['tcp', true],
      ]);
      const list = ['list', address(), '--nqn', KERNEL_NQN];
      expect((await ask(...list)).stdout).toContain('16 MiB');
      await guest.run(`echo 0 > ${SUBSYSTEM}/attr_allow_any_host`);
      const refused = await ask(...list);
      await guest.run(`echo 1 > ${SUBSYSTEM}/attr_allow_any_host`);
      expect(refused.exitCode).toBe(EXIT_NO_CONNECTION);
      expect(refused.stderr).toContain('connect invalid host');
    });
  });
}
