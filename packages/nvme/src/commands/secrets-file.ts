/**
 * Files with a line for each host. `--dhchap-keys FILE`: `HOSTNQN SECRET [CONTROLLERSECRET]`. `--tls-keys FILE`:
 * `HOSTNQN KEY`.
 */

import { RoceError } from 'rocev2/internal/core';
import { readPrivateFile } from 'rocev2/internal/driver';
import { DhchapSecret } from '../auth/dhchap-secret.js';
import { NvmeTlsKey } from '../auth/tls-key.js';
import type { NvmeHostTlsKey } from '../live/nvme-tls.js';
import type { NvmeHostSecrets } from '../live/subsystem-init.js';
import { checkNqn } from '../subsystem.js';
import type { NvmeTransport } from '../target-connection.js';

export async function readSecrets(path: string): Promise<NvmeHostSecrets[]> {
  return readHostLines(path, 'HOSTNQN SECRET [CONTROLLERSECRET]', (hostNqn, [secret, controllerSecret, ...rest]) => {
    if (secret === undefined || rest.length > 0) return undefined;
    DhchapSecret.parse(secret);
    if (controllerSecret !== undefined) DhchapSecret.parse(controllerSecret);
    return { hostNqn, secret, ...(controllerSecret !== undefined && { controllerSecret }) };
  });
}

export async function readTlsKeys(path: string): Promise<NvmeHostTlsKey[]> {
  return readHostLines(path, 'HOSTNQN KEY', (hostNqn, [key, ...rest]) => {
    if (key === undefined || rest.length > 0) return undefined;
    NvmeTlsKey.parse(key);
    return { hostNqn, key };
  });
}

async function readHostLines<T>(
  path: string,
  form: string,
  read: (hostNqn: string, words: readonly string[]) => T | undefined,
): Promise<T[]> {
  const found = new Map<string, T>();
  const lines = (await readPrivateFile(path)).toString('utf8').split('\n');
  for (const [i, line] of lines.entries()) {
    const [hostNqn, ...words] = line
      .replace(/(^|\s)#.*$/, '')
      .trim()
      .split(/\s+/);
    if (hostNqn === '') continue;
    const at = `line ${i + 1} of ${path}`;
    let own: T | undefined;
    try {
      own = read(hostNqn, words);
      if (own !== undefined) checkNqn(hostNqn);
    } catch (cause) {
      throw new RoceError('ERR_ROCE_MALFORMED', `${at}: ${(cause as Error).message}`, undefined, { cause });
    }
    if (own === undefined) throw new RoceError('ERR_ROCE_MALFORMED', `${at} is not ${form}`);
    if (found.has(hostNqn)) throw new RoceError('ERR_ROCE_CONFLICT', `${at} names ${hostNqn} again`);
    found.set(hostNqn, own);
  }
  if (found.size === 0) throw new RoceError('ERR_ROCE_MALFORMED', `${path} has no secrets`);
  return [...found.values()];
}

export interface NvmeHostKeyFlags {
  readonly hostNqn?: string;
  readonly dhchapKeys?: string;
  readonly tlsKeys?: string;
}

export interface NvmeHostKeys {
  readonly secret?: string;
  readonly controllerSecret?: string;
  readonly tlsKey?: string;
}

export async function readHostKeys(
  { hostNqn, dhchapKeys, tlsKeys }: NvmeHostKeyFlags,
  transports: readonly NvmeTransport[],
): Promise<NvmeHostKeys> {
  if (tlsKeys !== undefined && transports.includes('rdma')) {
    throw new RoceError('ERR_ROCE_CONFLICT', 'RDMA has no TLS', 'use TCP');
  }
  const secrets = dhchapKeys === undefined ? undefined : lineOf(hostNqn, dhchapKeys, await readSecrets(dhchapKeys));
  const tls = tlsKeys === undefined ? undefined : lineOf(hostNqn, tlsKeys, await readTlsKeys(tlsKeys));
  return {
    ...(secrets && { secret: secrets.secret }),
    ...(secrets?.controllerSecret !== undefined && { controllerSecret: secrets.controllerSecret }),
    ...(tls && { tlsKey: tls.key }),
  };
}

function lineOf<T extends { readonly hostNqn: string }>(
  hostNqn: string | undefined,
  path: string,
  lines: readonly T[],
): T {
  if (hostNqn === undefined) {
    throw new RoceError(
      'ERR_ROCE_INVALID_ARGUMENT',
      'secrets belong to an NQN',
      'give --host-nqn, or host-nqn= in a URI',
    );
  }
  const own = lines.find((line) => line.hostNqn === hostNqn);
  if (own === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', `${path} has no secret of ${hostNqn}`);
  return own;
}
