/** `rocev2 disk` as processes. */

import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { NbdDevice } from '../../src/storage-rpc/nbd/nbd-device.js';
import { documentOf as valid } from '../support/documents.js';
import { eventually } from '../support/eventually.js';
import { BLOCK, BLOCKS, Chain, documentOf, folder, rocev2Disk, uriOf } from './disk-programs.js';
import { isBuilt } from './executable.js';
import { KILLED_DISK_BYTES, killAgainAndAgain, page } from './killed-gateway.js';

describe.skipIf(!isBuilt)('rocev2 disk nbd', () => {
  it('serves a disk until Ctrl-C, and says what it did', async () => {
    const program = rocev2Disk('nbd', '--listen', '127.54.0.1:0', '--backend', 'memory', '--size', '1MiB', '--json');
    const device = await NbdDevice.open(await uriOf(program));
    await device.write(4096, Buffer.alloc(8192, 1));
    await device.read(0, 4096, Buffer.alloc(4096));
    await device.close();
    program.kill('SIGINT');
    expect(await program.ended(), program.stderr).toBe(0);
    expect(JSON.parse(program.stdout)).toMatchObject({
      sizeBytes: 1 << 20,
      connections: 1,
      bytesRead: 4096,
      bytesWritten: 8192,
    });
  });

  it('killed with writes under way, again and again: whatever was acknowledged is there, every block is one that was written', async () => {
    const args = ['--listen', `unix:${join(folder, 'socket')}`, '--backend', `file:${join(folder, 'disk')}`];
    const asked = await killAgainAndAgain(4, async () => {
      const program = rocev2Disk('nbd', ...args, '--size', `${KILLED_DISK_BYTES}`);
      return { program, uri: await uriOf(program) };
    });
    expect(asked).toBeGreaterThan(300);
  }, 60_000);

  it('says what is wrong with a backend, an address, a server that is not there', async () => {
    const run = async (...args: string[]) => {
      const program = rocev2Disk('nbd', ...args);
      return [await program.ended(), program.stderr] as const;
    };
    expect(await run('--listen', '127.54.0.1:0', '--backend', 'tape')).toEqual([
      2,
      expect.stringContaining('not a backend'),
    ]);
    expect(await run('--listen', 'nowhere', '--backend', 'memory')).toEqual([2, expect.stringContaining('HOST:PORT')]);
    const behind = ['--backend', 'nbd://127.54.0.1:1'];
    expect(await run('--listen', '127.54.0.1:0', ...behind)).toEqual([3, expect.stringContaining('ECONNREFUSED')]);
  });
});

/** Writes and reads back until told to stop. `begun`: somebody has done so once; `rounds`: how often it was done, after the end. */
function keepBusy(device: NbdDevice, stopped: () => boolean): { begun: Promise<void>; rounds: Promise<number> } {
  let rounds = 0;
  const writers = Array.from({ length: 8 }, async (_, writer) => {
    for (let n = 0; !stopped(); n++) {
      const block = writer + 8 * (n % (BLOCKS / 8));
      await device.write(block * BLOCK, page(n + 1));
      const read = Buffer.alloc(BLOCK);
      await device.read(block * BLOCK, BLOCK, read);
      expect(read.equals(page(n + 1))).toBe(true);
      rounds++;
    }
  });
  const ended = Promise.all(writers);
  return {
    begun: Promise.race([eventually(() => rounds > 0), ended.then(() => {})]),
    rounds: ended.then(() => rounds),
  };
}

describe.skipIf(!isBuilt)('rocev2 disk serve and a gateway to it', () => {
  it('what NBD clients write goes over RDMA to the server and is there', async () => {
    const { server, gateway } = await Chain.start('--transport', 'rdma', '--loss', 'random=0.01');
    const device = await NbdDevice.open(await uriOf(gateway));
    const data = Buffer.concat(Array.from({ length: BLOCKS }, (_, i) => page(i + 1)));
    await device.write(0, data, { fua: true });
    const read = Buffer.alloc(data.length);
    await device.read(0, read.length, read);
    expect(read.equals(data)).toBe(true);
    await device.close();
    expect(await documentOf(gateway)).toMatchObject({ storage: { state: 'RDMA', failovers: 0, crcMismatches: 0 } });
    expect(await documentOf(server)).toMatchObject({ crcMismatches: 0, protocolErrors: 0 });
  });

  it.skipIf(process.platform === 'win32')(
    'RDMA that breaks: no client notices',
    async () => {
      const { server, gateway } = await Chain.start('--hold-down', '20ms');
      const device = await NbdDevice.open(await uriOf(gateway));
      let isBroken = false;
      const busy = keepBusy(device, () => isBroken);
      await busy.begun;
      gateway.kill('SIGUSR2');
      await gateway.writes('stderr', /broke the RDMA connections/);
      isBroken = true;
      expect(await busy.rounds).toBeGreaterThan(0);
      await device.close();
      const { storage } = await documentOf(gateway);
      expect((storage as { failovers: number }).failovers).toBeGreaterThanOrEqual(1);
      await documentOf(server);
    },
    60_000,
  );

  it('a server that is killed and started again: clients wait, and nothing acknowledged is lost', async () => {
    const { server, gateway } = await Chain.start();
    const device = await NbdDevice.open(await uriOf(gateway));
    await device.write(0, page(7));
    let stopped = false;
    const busy = keepBusy(device, () => stopped);
    await busy.begun;
    server.kill('SIGKILL');
    await server.ended();
    const heir = await Chain.serve();
    stopped = true;
    await busy.rounds;
    await device.close();
    expect(await documentOf(gateway)).toMatchObject({ storage: { serverRestarts: 1 } });
    await documentOf(heir);
  }, 60_000);
});

describe.skipIf(!isBuilt)('a gateway whose server goes away', () => {
  it('says so, refuses another disk behind the address, and goes on with the right one', async () => {
    const { server, gateway } = await Chain.start();
    const device = await NbdDevice.open(await uriOf(gateway));
    await device.write(0, page(7), { fua: true });
    server.kill('SIGKILL');
    await server.ended();
    const write = device.write(BLOCK, page(8));
    await gateway.writes('stderr', /the storage server cannot be reached: .*; requests wait for it\n/);
    const other = await Chain.serve('other');
    await gateway.writes(
      'stderr',
      /REFUSED: the storage server has another disk: it has 'other' .* 'disk' .* was used/,
    );
    await other.writes('stderr', /refused a client of 'disk' .*: this server has 'other'/);
    expect(await documentOf(other)).toMatchObject({ executed: 0, wrongDisks: expect.any(Number) });
    const heir = await Chain.serve();
    await write;
    await gateway.writes('stderr', /the storage server is back after/);
    const read = Buffer.alloc(2 * BLOCK);
    await device.read(0, read.length, read);
    expect(read.equals(Buffer.concat([page(7), page(8)]))).toBe(true);
    await device.close();
    expect(await documentOf(gateway)).toMatchObject({ storage: { outages: 1, outage: null } });
    await documentOf(heir);
  }, 60_000);

  it('ends by Ctrl-C all the same', async () => {
    const { server, gateway } = await Chain.start('--transport', 'tcp');
    const device = await NbdDevice.open(await uriOf(gateway));
    server.kill('SIGKILL');
    await server.ended();
    const read = device.read(0, BLOCK, Buffer.alloc(BLOCK)).catch(() => 'failed');
    await gateway.writes('stderr', /cannot be reached/);
    expect(await documentOf(gateway)).toMatchObject({ storage: { outages: 1 } });
    expect(await read).toBe('failed');
    await device.close();
  }, 60_000);
});

describe.skipIf(!isBuilt)('rocev2 disk bench', () => {
  const few = ['--blocks', '4KiB', '--depths', '1,4', '-D', '30ms', '--reps', '1', '--size', '4MiB'];

  it('prints a row for each transport, operation, size and depth', async () => {
    const program = rocev2Disk('bench', ...few, '--json');
    expect(await program.ended(), program.stderr).toBe(0);
    const { rows } = valid('disk-bench', program.stdout) as { rows: Array<Record<string, unknown>> };
    const cells = rows.map(({ op, queueDepth, transport }) => `${op} ${queueDepth} ${transport}`);
    expect(cells).toEqual(
      ['randread', 'randwrite'].flatMap((op) => [1, 4].flatMap((d) => [`${op} ${d} rdma`, `${op} ${d} tcp`])),
    );
    for (const row of rows) {
      expect(row).toMatchObject({
        blockBytes: 4096,
        iops: expect.any(Number),
        latencyNs: { p50: expect.any(Number), p99: expect.any(Number) },
        cpuNsPerIo: expect.any(Number),
      });
      expect(row['bytesPerSecond']).toBeCloseTo((row['iops'] as number) * 4096, 3);
    }
  });

  it('measures an NBD export beside them, as a table', async () => {
    const gateway = rocev2Disk('nbd', '--listen', '127.54.0.1:0', '--backend', 'memory', '--size', '4MiB');
    const args = ['--ops', 'randread', '--transports', 'tcp', '--nbd', await uriOf(gateway)];
    const program = rocev2Disk('bench', ...few, ...args);
    expect(await program.ended(), program.stderr).toBe(0);
    expect(program.stdout).toMatch(/randread +4 KiB +1 +tcp .*\nrandread +4 KiB +1 +nbd .*\n/);
    gateway.kill('SIGINT');
    await gateway.ended();
  });
});
