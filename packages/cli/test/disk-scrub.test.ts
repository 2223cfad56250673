/** `rocev2 disk serve --scrub`: a byte that changes under the disk is found though nobody reads it, and named. */

import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FileDevice } from '../../../src/storage-rpc/disk/file-device.js';
import { StorageClient } from '../../../src/storage-rpc/live/storage-client.js';
import { freePort } from '../../../test/support/free-port.js';
import { run } from './run-in-process.js';

const HOST = '127.0.1.32';
const MIB = 1 << 20;

test.each([
  ['a disk', (path: string) => ['--backend', `file:${path}`, '--scrub', '64MiB']],
  ['a disk with a name', (path: string) => ['--disk', `db=file:${path},scrub=64MiB`]],
])('a flipped byte of %s is found in the background, by its place, once', async (_, disk) => {
  const folder = await mkdtemp(join(tmpdir(), 'rocev2-scrub-'));
  const stop = new AbortController();
  const port = await freePort();
  const path = join(folder, 'disk');
  try {
    {
      await using made = await FileDevice.open({ path, sizeBytes: 4 * MIB });
      await made.write(0, Buffer.alloc(2 * MIB, 7));
    }
    const file = await open(path, 'r+');
    await file.write(Buffer.of(8), 0, 1, MIB + 100);
    await file.close();

    let said = '';
    let onSaid = (): void => {};
    const saying = (pattern: RegExp) =>
      new Promise<void>((resolve) => {
        onSaid = () => void (pattern.test(said) && resolve());
        onSaid();
      });
    const at = ['--bind', HOST, '-p', `${port}`, '--udp-port', '0', '--engine', 'inline', '--json'];
    const serving = run(['disk', 'serve', ...at, ...disk(path)], {
      interrupted: stop.signal,
      onStderr: (soFar) => {
        said = soFar;
        onSaid();
      },
    });
    await saying(/the scrubber found damage: the checksum of the 4 KiB at 1048576 is wrong/);
    await saying(/Ctrl-C ends it/);
    const client = await StorageClient.connect({ host: HOST, port });
    await expect(client.disk.read(MIB, 4096, Buffer.alloc(4096))).rejects.toMatchObject({ errno: 'EIO' });

    // What is written anew is whole.
    await client.disk.write(MIB, Buffer.alloc(4096, 9));
    const back = Buffer.alloc(2 * MIB);
    await client.disk.read(0, back.length, back);
    expect([back[MIB], back[MIB + 4096]]).toEqual([9, 7]);
    await client.close();
    stop.abort();
    const { exitCode, stderr } = await serving;
    expect(exitCode, stderr).toBe(0);
    expect(stderr.split('found damage')).toHaveLength(2);
  } finally {
    stop.abort();
    await rm(folder, { recursive: true });
  }
});
