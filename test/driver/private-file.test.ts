import { chmodSync, chownSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { appendToKeyLog } from '../../src/driver/key-log-file.js';
import { readPrivateFile } from '../../src/driver/private-file.js';
import { readCertificates } from '../../src/storage-rpc/nbd/tls/certificate-folder.js';
import { readPskFile } from '../../src/storage-rpc/nbd/tls/psk-file.js';
import { DeviceSecurity } from '../../src/verbs/security.js';

const NOBODY = 65_534;
const isRoot = process.geteuid?.() === 0;

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'private-file-'));
  path = join(folder, 'keys');
  writeFileSync(path, 'alice:00112233445566778899aabbccddeeff\n', { mode: 0o600 });
});
afterEach(() => rmSync(folder, { recursive: true }));

const WAYS = [
  ['a file with keys', (file: string) => readPrivateFile(file), [0o600, 0o400, 0o640], [0o604, 0o644, 0o602, 0o620]],
  ['a key log', (file: string) => appendToKeyLog(file, 'x\n'), [0o600], [0o640, 0o604, 0o602, 0o620]],
] as const;

describe.skipIf(process.platform === 'win32').each(WAYS)('%s', (_, use, allowed, refused) => {
  it('may be accessible to its owner', async () => {
    for (const mode of allowed) {
      chmodSync(path, mode);
      await use(path);
    }
  });

  it('must not be accessible to others', async () => {
    for (const mode of refused) {
      chmodSync(path, mode);
      await expect(use(path)).rejects.toThrow(`other users have access to ${path} (chmod 600 ${path})`);
    }
  });

  it('is not a symbolic link', async () => {
    const link = join(folder, 'link');
    symlinkSync(path, link);
    await expect(use(link)).rejects.toThrow(`${link} is a symbolic link`);
    symlinkSync(join(folder, 'none'), join(folder, 'dangling'));
    await expect(use(join(folder, 'dangling'))).rejects.toThrow('is a symbolic link');
  });

  it('is a regular file', async () => {
    await expect(use(folder)).rejects.toThrow(/directory|not a regular file/);
    await expect(use('/dev/null')).rejects.toThrow('/dev/null is not a regular file');
  });

  it.runIf(isRoot)('does not belong to another user', async () => {
    chownSync(path, NOBODY, NOBODY);
    await expect(use(path)).rejects.toThrow(`${path} belongs to another user (${NOBODY})`);
    chownSync(path, 0, 0);
    await use(path);
  });
});

it('a file that is not there is named', async () => {
  await expect(readPrivateFile(`${path}x`)).rejects.toThrow(`cannot read the keys in ${path}x: there is no such file`);
});

it('the private key of a folder with certificates is a file with keys; certificates are not', async () => {
  for (const name of ['server-cert.pem', 'server-key.pem']) writeFileSync(join(folder, name), '', { mode: 0o644 });
  const key = join(folder, 'server-key.pem');
  await expect(readCertificates(folder, 'server')).rejects.toThrow(`other users have access to ${key}`);
});

it('a name has one key, in a file and in options', async () => {
  const line = `alice:${'5a'.repeat(16)}\n`;
  writeFileSync(path, `${line}# again\n${line}`);
  await expect(readPskFile(path)).rejects.toMatchObject({
    code: 'ERR_ROCE_CONFLICT',
    message: expect.stringContaining(`${path} line 3 names 'alice' again`),
  });
  const psk = { identity: 'alice', key: new Uint8Array(16) };
  expect(() => new DeviceSecurity({ psk: [psk, { ...psk, identity: 'bob' }, psk] })).toThrow(
    expect.objectContaining({ code: 'ERR_ROCE_CONFLICT' }),
  );
});
