/** Commands that fail, come late or are never answered, by rule, in virtual time. */

import { describe, expect, it } from 'vitest';
import { parseCommandFaults } from '../src/command-faults.js';
import { IO } from '../src/opcodes.js';
import { DNR, STATUS } from '../src/status.js';
import { Host } from './hosts.js';
import { RawQueue } from './raw-queue.js';
import { TcpWorld } from './world.js';

async function hostOf(faults?: string): Promise<{ world: TcpWorld; host: Host }> {
  const world = new TcpWorld(faults === undefined ? {} : { faults });
  return { world, host: await Host.connect(world, 1) };
}

async function times(count: number, run: () => Promise<number>): Promise<number[]> {
  const results: number[] = [];
  for (let i = 0; i < count; i++) results.push(await run());
  return results;
}

it('fails every third write with a status, and no other command; without the rule none', async () => {
  const { host } = await hostOf('opcode=write:status=0x281:every=3');
  expect(await times(7, () => host.write())).toEqual([0, 0, 0x281, 0, 0, 0x281, 0]);
  expect(await times(4, () => host.read())).toEqual([0, 0, 0, 0]);
  const { host: twin } = await hostOf();
  expect(await times(7, () => twin.write())).toEqual([0, 0, 0, 0, 0, 0, 0]);
});

it('does not execute a command that it fails', async () => {
  const { world, host } = await hostOf('opcode=write:status=0x280,dnr:once');
  expect(await host.write(7)).toBe(STATUS.WRITE_FAULT | DNR);
  const read = Buffer.alloc(4096);
  await world.disk.read(0, 4096, read);
  expect(read.every((byte) => byte === 0)).toBe(true);
  expect(await host.write(7)).toBe(0);
});

it('strikes the blocks and the namespace that it names', async () => {
  const { host } = await hostOf('lba=10-20:status=0x281; nsid=2:status=0x280');
  const read = (lba: number, blocks: number) =>
    host.io.status({ opcode: IO.READ, nsid: 1, dwords: [lba, 0, blocks - 1], into: Buffer.alloc(512 * blocks) });
  expect([await read(9, 1), await read(9, 2), await read(20, 1), await read(21, 1)]).toEqual([0, 0x281, 0x281, 0]);
  expect(await host.io.status({ opcode: IO.FLUSH, nsid: 1 })).toBe(0);
  expect(await host.io.status({ opcode: IO.FLUSH, nsid: 2 })).toBe(0x280);
});

it('strikes with a probability', async () => {
  const { host } = await hostOf('opcode=read:random=0.5:status=0x281');
  const struck = (await times(100, () => host.read())).filter((status) => status !== 0).length;
  expect(struck).toBeGreaterThan(30);
  expect(struck).toBeLessThan(70);
});

it('delays a command, and others pass it', async () => {
  const { world, host } = await hostOf('opcode=write:delay=2s:once');
  const startNs = world.events.nowNs;
  const write = { opcode: IO.WRITE, nsid: 1, dwords: [0, 0, 0], out: Buffer.alloc(512, 1) };
  const late = host.io.queue.execute(write).then(() => world.events.nowNs);
  expect(await host.read()).toBe(0);
  expect(world.events.nowNs - startNs).toBeLessThan(1e9);
  expect((await world.until(late)) - startNs).toBeGreaterThanOrEqual(2e9);
});

it('executes a command that it leaves without an answer; the queue has an entry less then', async () => {
  const { world, host } = await hostOf('opcode=write:silent:once');
  let isAnswered = false;
  const write = { opcode: IO.WRITE, nsid: 1, dwords: [0, 0, 0], out: Buffer.alloc(512, 9) };
  host.io.queue.execute(write).then(
    () => {
      isAnswered = true;
    },
    () => {},
  );
  await world.pass(100e9);
  expect(isAnswered).toBe(false);
  const read = Buffer.alloc(512);
  await world.disk.read(0, 512, read);
  expect(read[0]).toBe(9);
  expect(await host.write()).toBe(0);
  await world.until(world.target.close());
  expect(world.memory.pool.inUse).toBe(0);
});

it('ends a queue, and no other', async () => {
  const { world, host } = await hostOf('opcode=flush:disconnect:once');
  await expect(world.until(host.io.queue.execute({ opcode: IO.FLUSH, nsid: 1 }))).rejects.toThrow();
  expect(world.target.connections.tcp).toBe(1);
  const again = await RawQueue.open(world);
  await again.connect({ qid: 1, cntlid: 1, hostId: Buffer.alloc(16, 1) });
  expect(await again.status({ opcode: IO.FLUSH, nsid: 1 })).toBe(0);
});

it.each([
  ['', 'unknown'],
  ['opcode=write', 'does nothing (add status=CODE'],
  ['opcode=jump:silent', "'jump' is not a command (it is a number or one of flush, write, read"],
  ['opcode=wriet:silent', "did you mean 'write'?"],
  ['opcode=256:silent', 'from 0 to 255'],
  ['status=0x800', 'from 1 to 2047'],
  ['status=0x281,never', "only 'dnr'"],
  ['status=0x281:silent', 'of which there may be one'],
  ['once:x3:silent', 'of which there may be one'],
  ['random=2:silent', 'from 0 to 1'],
  ['delay=soon', 'soon'],
  ['every=0:silent', 'from 1 up'],
  ['lba=9-1:silent', 'blocks are FIRST or FIRST-LAST'],
  ['lba=1-2-3:silent', 'blocks are FIRST or FIRST-LAST'],
  ['colour=red:silent', 'unknown (known are opcode, nsid, lba, every'],
  ['opcod=write:silent', "unknown (did you mean 'opcode'?"],
  ['opcode=write:statsu=0x281', "unknown (did you mean 'status'?"],
])('%j is no rule', (text, words) => {
  expect(() => parseCommandFaults(text)).toThrow(words);
  expect(() => parseCommandFaults(text)).toThrow(expect.objectContaining({ code: 'ERR_ROCE_MALFORMED' }));
});

describe('a disk whose target has a command that its medium has not', () => {
  const open = async (faults: string) => {
    const world = new TcpWorld({ faults });
    const disk = await world.openDisk();
    await world.until(disk.write(0, Buffer.alloc(8192, 1)));
    const isZero = async () => {
      const read = Buffer.alloc(8192);
      await world.disk.read(0, read.length, read);
      return read.every((byte) => byte === 0);
    };
    return { world, disk, isZero };
  };

  it('writes zeros instead, each time', async () => {
    const { world, disk, isZero } = await open('opcode=write-zeroes:status=0x183,dnr');
    await world.until(disk.writeZeroes(0, 8192));
    expect(await isZero()).toBe(true);
    await world.until(disk.write(0, Buffer.alloc(8192, 2)));
    await world.until(disk.writeZeroes(0, 8192));
    expect(await isZero()).toBe(true);
  });

  it('keeps what was to be trimmed', async () => {
    const { world, disk, isZero } = await open('opcode=dataset-management:status=0x183,dnr');
    await world.until(disk.trim(0, 8192));
    expect(await isZero()).toBe(false);
  });

  it('passes other failures on', async () => {
    const { world, disk, isZero } = await open('opcode=write-zeroes:status=0x280,dnr');
    await expect(world.until(disk.writeZeroes(0, 8192))).rejects.toThrow('EIO');
    expect(await isZero()).toBe(false);
  });
});
