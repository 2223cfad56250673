/** Who may write to a disk, as processes that are stopped, killed and started anew. */

import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { NbdDevice } from '../../src/storage-rpc/nbd/nbd-device.js';
import { BLOCK, Chain, documentOf, folder, rocev2Disk, uriOf } from './disk-programs.js';
import { isBuilt, type Program } from './executable.js';
import { page } from './killed-gateway.js';

describe.skipIf(!isBuilt || process.platform === 'win32')('who may write', () => {
  const restarted = async (server: Program) => {
    server.kill('SIGKILL');
    await server.ended();
    return Chain.serve('disk', '--lease', '5s');
  };
  const gateway = (number: number) => {
    const meet = ['--connect', '127.54.0.1', '--bind', `127.54.0.${number}`, '--transport', 'tcp'];
    return rocev2Disk('nbd', ...meet, '--listen', `unix:${join(folder, `socket-${number}`)}`, '--json');
  };

  it('a gateway that another one followed is fenced, though the server was started anew before and after', async () => {
    let server = await Chain.serve('disk', '--lease', '5s');
    const first = gateway(2);
    const device = await NbdDevice.open(await uriOf(first));
    await device.write(0, page(1));
    first.kill('SIGSTOP');
    server = await restarted(server);
    const second = gateway(3);
    await second.writes('stderr', /in use by process \d+ on .*: its writer is gone, and its lease ends in \d s/);
    const other = await NbdDevice.open(await uriOf(second));
    await other.write(0, page(2), { fua: true });
    await other.close();
    await documentOf(second);
    server = await restarted(server);
    const late = device.write(0, page(3)).catch((error: Error) => error.message);
    first.kill('SIGCONT');
    await first.writes('stderr', /FENCED: .*requests fail from now on/);
    expect(await late).toMatch(/EIO/);
    const third = await NbdDevice.open(await uriOf(gateway(4)));
    const read = Buffer.alloc(BLOCK);
    await third.read(0, BLOCK, read);
    expect(read.equals(page(2))).toBe(true);
    await device.close();
    await third.close();
  }, 60_000);
});
