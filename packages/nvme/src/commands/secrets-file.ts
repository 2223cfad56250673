/**
 * Files with a line for each host. `--dhchap-keys FILE`: who proves itself by which secret of DH-HMAC-CHAP, `HOSTNQN SECRET [CONTROLLERSECRET]`.
 * `--tls-keys FILE`: who has which key of TLS, `HOSTNQN KEY`.
 */

import { readInputFile } from '@rocev2/command';
import { RoceError } from 'rocev2/internal/core';
import { DhchapSecret } from '../auth/dhchap-secret.js';
import { NvmeTlsKey } from '../auth/tls-key.js';
import type { NvmeHostSecrets } from '../live/nvme-target-server.js';
import type { NvmeHostTlsKey } from '../live/nvme-tls.js';
import { checkNqn } from '../subsystem.js';
import type { NvmeTransport } from '../target-connection.js';

/** Reads a file of secrets. Rejects with ERR_ROCE_IO where it cannot be read, ERR_ROCE_MALFORMED with the line that is wrong, ERR_ROCE_CONFLICT for a host that is there twice. */
export async function readSecrets(path: string): Promise<NvmeHostSecrets[]> {
  return readHostLines(path, 'HOSTNQN SECRET [CONTROLLERSECRET]', (hostNqn, [secret, controllerSecret, ...rest]) => {
    if (secret === undefined || rest.length > 0) return undefined;
    DhchapSecret.parse(secret);
    if (controllerSecret !== undefined) DhchapSecret.parse(controllerSecret);
    return { hostNqn, secret, ...(controllerSecret !== undefined && { controllerSecret }) };
  });
}

/** Reads a file of TLS keys; rejects as {@link readSecrets}. */
export async function readTlsKeys(path: string): Promise<NvmeHostTlsKey[]> {
  return readHostLines(path, 'HOSTNQN KEY', (hostNqn, [key, ...rest]) => {
    if (key === undefined || rest.length > 0) return undefined;
    NvmeTlsKey.parse(key);
    return { hostNqn, key };
  });
}

/** Reads a line a host; `read` gets its words behind the NQN, and says undefined where they are not of the form. */
async function readHostLines<T>(
  path: string,
  form: string,
  read: (hostNqn: string, words: readonly string[]) => T | undefined,
): Promise<T[]> {
  const found = new Map<string, T>();
  const lines = (await readInputFile(path)).toString('utf8').split('\n');
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

/** Who a host is, and the files of its keys. */
export interface NvmeHostKeyFlags {
  /** NVMe qualified name by which subsystems know this side; a random one where none is given. */
  readonly hostNqn?: string;
  /** File of secrets of DH-HMAC-CHAP. */
  readonly dhchapKeys?: string;
  /** File of keys of TLS. */
  readonly tlsKeys?: string;
}

/** The keys of one host, as `openNvme` takes them. */
export interface NvmeHostKeys {
  /** By which the host proves itself. */
  readonly secret?: string;
  /** By which the controller has to. */
  readonly controllerSecret?: string;
  /** In interchange format. */
  readonly tlsKey?: string;
}

/**
 * The keys of one host. Rejects as {@link readSecrets}, with ERR_ROCE_NOT_FOUND where a file has none of this host, ERR_ROCE_CONFLICT for TLS without TCP, and
 * ERR_ROCE_INVALID_ARGUMENT where files are named and the host is not.
 */
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
