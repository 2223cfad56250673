/** Pre-shared key files as psktool of GnuTLS writes them: lines of `USER:KEY`, the key in hexadecimal. */

import { RoceError } from '../../../core/errors.js';
import { readPrivateFile } from '../../../driver/private-file.js';

/** RFC 4279 requires support of identities of 128 bytes and keys of 64. */
const USER_BYTES_MAX = 128;
const KEY_BYTES_MAX = 64;
const KEY_BYTES_MIN = 16;

export async function readPskFile(path: string): Promise<ReadonlyMap<string, Buffer>> {
  const text = (await readPrivateFile(path)).toString('utf8');
  const keys = new Map<string, Buffer>();
  text.split(/\r?\n/).forEach((line, i) => {
    if (line.trim() === '' || line.startsWith('#')) return;
    const where = `${path} line ${i + 1}`;
    const [user, key] = parseLine(line, where);
    if (keys.has(user))
      throw new RoceError('ERR_ROCE_CONFLICT', `${where} names '${user}' again`, 'keep one of the lines');
    keys.set(user, key);
  });
  if (keys.size > 0) return keys;
  throw new RoceError(
    'ERR_ROCE_MALFORMED',
    `${path} has no key`,
    `make one: (umask 077; echo "alice:$(openssl rand -hex 32)" > ${path})`,
  );
}

/** The line itself is not shown: it may have a key in it. */
function parseLine(line: string, where: string): [user: string, key: Buffer] {
  const [, user, hex] = /^([^:]+):((?:[0-9a-fA-F]{2})+)\s*$/.exec(line) ?? [];
  if (user === undefined || Buffer.byteLength(user) > USER_BYTES_MAX) {
    throw new RoceError('ERR_ROCE_MALFORMED', `${where} is not USER:KEY with the key in hexadecimal`);
  }
  const key = Buffer.from(hex, 'hex');
  if (key.length >= KEY_BYTES_MIN && key.length <= KEY_BYTES_MAX) return [user, key];
  throw new RoceError(
    'ERR_ROCE_MALFORMED',
    `${where} has a key of ${key.length} bytes`,
    `a key has ${KEY_BYTES_MIN} to ${KEY_BYTES_MAX} bytes`,
  );
}
