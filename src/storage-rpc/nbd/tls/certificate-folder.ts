/** Certificate folders with the file names of nbdkit, qemu and libnbd. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { RoceError } from '../../../core/errors.js';
import { whyUnreadable } from '../../../core/file-errors.js';
import { readPrivateFile } from '../../../driver/private-file.js';

export interface TlsCredentials {
  readonly ca?: string;
  readonly crl?: string;
  readonly cert?: string;
  readonly key?: string;
}

export async function readCertificates(folder: string, side: 'server' | 'client'): Promise<TlsCredentials> {
  const isServer = side === 'server';
  const cert = await read(folder, `${side}-cert.pem`, isServer);
  const found = {
    ca: await read(folder, 'ca-cert.pem', false),
    crl: await read(folder, 'ca-crl.pem', false),
    cert,
    key: cert === undefined ? undefined : (await readPrivateFile(join(folder, `${side}-key.pem`))).toString('utf8'),
  };
  const certificates = Object.fromEntries(Object.entries(found).filter(([, text]) => text !== undefined));
  try {
    createSecureContext(certificates);
  } catch (cause) {
    const { message } = cause as Error;
    throw new RoceError('ERR_ROCE_MALFORMED', `the certificates in ${folder} cannot be used: ${message}`, undefined, {
      cause,
    });
  }
  return certificates;
}

async function read(folder: string, name: string, isNeeded: boolean): Promise<string | undefined> {
  const path = join(folder, name);
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    if (!isNeeded && (cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new RoceError('ERR_ROCE_IO', `cannot read ${path}: ${whyUnreadable(cause)}`, undefined, { cause });
  }
}
