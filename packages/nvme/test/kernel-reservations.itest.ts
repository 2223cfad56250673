/** Two guests with one namespace of our target: hosts that fence each other by reservations. */

import { expect, test } from 'vitest';
import { describeWithRig } from '../../../test/interop/support/describe-on-rig.js';
import { connect, KernelGuest, PATIENCE_MS } from './kernel-guest.js';

await describeWithRig('reservations of an NVMe target', { guests: 2 }, (rig) => {
  const guest = new KernelGuest(rig, [1, 2]);
  const disk = '/dev/nvme0n1';
  const write = async (number: number) =>
    (await guest.tryIn(number, `dd if=/dev/zero of=${disk} bs=4k count=1 oflag=direct`)).exitCode;

  test('the host without the reservation cannot write; a host that preempts it can, and the other no more', async () => {
    await guest.startTarget(['--disk', 'memory', '--size', '64MiB', '--bind', guest.host4]);
    await guest.runIn(1, connect('rdma', guest.host4));
    await guest.runIn(2, connect('tcp', guest.host4));
    expect([await write(1), await write(2)]).toEqual([0, 0]);

    await guest.runIn(1, `nvme resv-register ${disk} --nrkey=17 --rrega=0`);
    await guest.runIn(1, `nvme resv-acquire ${disk} --crkey=17 --rtype=1 --racqa=0`);
    expect([await write(1), await write(2)]).toEqual([0, 1]);
    await guest.runIn(2, `dd if=${disk} of=/dev/null bs=4k count=1 iflag=direct`);
    const acquire = await guest.tryIn(2, `nvme resv-acquire ${disk} --crkey=34 --rtype=1 --racqa=0`);
    expect(acquire.said).toContain('Reservation Conflict');

    const io = await guest.beginIo(`rigio ${disk} 0 1048576 4096 4 1000 1`);
    await guest.runIn(2, `nvme resv-register ${disk} --nrkey=34 --rrega=0`);
    await guest.runIn(2, `nvme resv-acquire ${disk} --crkey=34 --prkey=17 --rtype=1 --racqa=1`);
    // From here on nothing of the first host reaches the disk.
    expect(await guest.runIn(2, `rigio ${disk} 0 1048576 4096 4 1 2`)).toBe('verified 256 blocks\n');
    // The conflict meets a write, or the flush after it.
    const refused = expect.stringMatching(/^rigio: (write|fdatasync)\b/);
    expect(await io.wait(PATIENCE_MS)).toMatchObject({ exitCode: 1, stderr: refused });
    expect([await write(1), await write(2)]).toEqual([1, 0]);
    const report = await guest.runIn(1, `nvme resv-report ${disk} --eds`);
    expect(report).toMatch(/rtype +: 1\nregctl +: 1\n/);
    expect(report).toMatch(/rkey +: 22\n +hostid +: 0+40008000+2\n/);

    await guest.runIn(2, `nvme resv-release ${disk} --crkey=34 --rtype=1 --rrela=0`);
    expect(await write(1)).toBe(0);
  });
});
