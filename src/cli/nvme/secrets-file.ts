/** `--dhchap-keys FILE`: who proves itself by which secret of DH-HMAC-CHAP, a line a host: `HOSTNQN SECRET [CONTROLLERSECRET]`. */

import { RoceError } from '../../core/errors.js';
import type { NvmeHostSecrets } from '../../storage-rpc/live/nvme-target-server.js';
import { DhchapSecret } from '../../storage-rpc/nvme/auth/dhchap-secret.js';
import { checkNqn } from '../../storage-rpc/nvme/subsystem.js';
import { readInputFile } from '../input-file.js';

/** Reads a file of secrets. Rejects with ERR_ROCE_IO where it cannot be read, ERR_ROCE_MALFORMED with the line that is wrong, ERR_ROCE_CONFLICT for a host that is there twice. */
export async function readSecrets(path: string): Promise<NvmeHostSecrets[]> {
  const found = new Map<string, NvmeHostSecrets>();
  const lines = (await readInputFile(path)).toString('utf8').split('\n');
  for (const [i, line] of lines.entries()) {
    const words = line
      .replace(/(^|\s)#.*$/, '')
      .trim()
      .split(/\s+/);
    if (words[0] === '') continue;
    const [hostNqn, secret, controllerSecret, ...rest] = words;
    const at = `line ${i + 1} of ${path}`;
    if (secret === undefined || rest.length > 0) {
      throw new RoceError('ERR_ROCE_MALFORMED', `${at} is not HOSTNQN SECRET [CONTROLLERSECRET]`);
    }
    try {
      checkNqn(hostNqn);
      DhchapSecret.parse(secret);
      if (controllerSecret !== undefined) DhchapSecret.parse(controllerSecret);
    } catch (cause) {
      throw new RoceError('ERR_ROCE_MALFORMED', `${at}: ${(cause as Error).message}`, undefined, { cause });
    }
    if (found.has(hostNqn)) throw new RoceError('ERR_ROCE_CONFLICT', `${at} names ${hostNqn} again`);
    found.set(hostNqn, { hostNqn, secret, ...(controllerSecret !== undefined && { controllerSecret }) });
  }
  if (found.size === 0) throw new RoceError('ERR_ROCE_MALFORMED', `${path} has no secrets`);
  return [...found.values()];
}

/** The line of one host. Rejects as {@link readSecrets}, and with ERR_ROCE_NOT_FOUND where there is none. */
export async function readSecretsOf(hostNqn: string | undefined, path: string): Promise<NvmeHostSecrets> {
  if (hostNqn === undefined) {
    throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', 'secrets belong to an NQN', 'give --host-nqn, too');
  }
  const own = (await readSecrets(path)).find((line) => line.hostNqn === hostNqn);
  if (own === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', `${path} has no secret of ${hostNqn}`);
  return own;
}
