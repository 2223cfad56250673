/** Disks whose server and gateway have pre-shared keys, as processes: what works, and with which words the others are refused. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { NbdDevice } from '../../src/storage-rpc/nbd/nbd-device.js';
import { BLOCK, Chain, folder, rocev2Disk, uriOf } from './disk-programs.js';
import { isBuilt } from './executable.js';

const KEY = '11'.repeat(32);

/** A file with the key, and another with a wrong one. */
function keyFiles(): { readonly right: string; readonly wrong: string } {
  const [right, wrong] = ['right', 'wrong'].map((name) => join(folder, name));
  writeFileSync(right, `gateway:${KEY}\n`, { mode: 0o600 });
  writeFileSync(wrong, `gateway:${'22'.repeat(32)}\n`, { mode: 0o600 });
  return { right, wrong };
}

const gateway = (...args: string[]) =>
  rocev2Disk(
    'nbd',
    '--connect',
    '127.54.0.1',
    '--bind',
    '127.54.0.2',
    '--listen',
    `unix:${join(folder, 'socket')}`,
    ...args,
  );

describe.skipIf(!isBuilt)('disk serve --psk', () => {
  it.each(['rdma', 'tcp'])('serves a gateway that has the key, over %s', async (transport) => {
    const { right } = keyFiles();
    await Chain.serve('disk', '--psk', right);
    const program = gateway('--psk', right, '--transport', transport);
    await using disk = await NbdDevice.open(await uriOf(program));
    const data = Buffer.alloc(BLOCK, 'secret ');
    await disk.write(BLOCK, data, { fua: true });
    const back = Buffer.alloc(BLOCK);
    await disk.read(BLOCK, BLOCK, back);
    expect(back.equals(data)).toBe(true);
  });

  it.each([
    ['no key', [], 1, /packets have to be protected here/],
    ['a wrong key', ['--psk', 'wrong'], 3, /do both ends have the same key/],
  ] as const)('refuses a gateway with %s at once, and says why', async (_, args, exitCode, why) => {
    const files = keyFiles();
    await Chain.serve('disk', '--psk', files.right);
    const program = gateway(...args.map((arg) => (arg === 'wrong' ? files.wrong : arg)));
    expect(await program.ended()).toBe(exitCode);
    expect(program.stderr).toMatch(why);
  });

  it('a gateway with a key refuses a server without', async () => {
    const { right } = keyFiles();
    await Chain.serve('disk');
    const program = gateway('--psk', right);
    expect(await program.ended()).toBe(1);
    expect(program.stderr).toMatch(/has no secure mode, and packets have to be protected/);
  });

  it('bench measures with the key', async () => {
    const { right } = keyFiles();
    const program = rocev2Disk(
      'bench',
      '--psk',
      right,
      '--blocks',
      '4KiB',
      '--depths',
      '1',
      '--reps',
      '1',
      '-D',
      '50ms',
      '--json',
    );
    expect(await program.ended(), program.stderr).toBe(0);
    const { rows } = JSON.parse(program.stdout);
    expect(rows.map(({ transport }: { transport: string }) => transport)).toContain('tcp');
  });
});
