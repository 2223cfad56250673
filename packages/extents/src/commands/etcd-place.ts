/** `etcd:URL[,URL...][?ca=FILE&cert=FILE&key=FILE&user=NAME&password=FILE]`: where managers keep their metadata. */

import { readInputFile } from '@rocev2/command';
import { RoceError } from 'rocev2/internal/core';
import { readPrivateFile } from 'rocev2/internal/driver';
import type { EtcdAccess } from '../live/etcd-access.js';
import { isEtcdEndpoint } from '../live/etcd-gateway.js';

export interface EtcdPlace {
  readonly endpoints: readonly string[];
  readonly given: Partial<Record<keyof EtcdAccess, string>>;
}

const PARAMETERS: Readonly<Record<keyof EtcdAccess, true>> = {
  ca: true,
  cert: true,
  key: true,
  user: true,
  password: true,
};
const FORM =
  'write etcd:http://HOST:PORT[,http://HOST:PORT...], or https:// with ?ca=FILE&cert=FILE&key=FILE appended, and user=NAME&password=FILE for a user whose password is in a file';

export function parseEtcdPlace(text: string): EtcdPlace {
  const [, list = '', query] = /^etcd:([^?]+)(?:\?(.+))?$/.exec(text) ?? [];
  const endpoints = list.split(',');
  const given = Object.fromEntries((query?.split('&') ?? []).map(parameter));
  const isKnown = Object.entries(given).every(([name, value]) => name in PARAMETERS && value !== '');
  if (!endpoints.every(isEtcdEndpoint) || !isKnown)
    throw new RoceError('ERR_ROCE_MALFORMED', `'${text}' is not a metadata store`, FORM);
  const together = (one: keyof EtcdAccess, other: keyof EtcdAccess) => {
    if (one in given === other in given) return;
    throw new RoceError('ERR_ROCE_CONFLICT', `'${one}' and '${other}' of etcd go together`, FORM);
  };
  together('cert', 'key');
  together('user', 'password');
  if (('ca' in given || 'cert' in given) && !endpoints.every((endpoint) => endpoint.startsWith('https:')))
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      "'ca' and 'cert' are for TLS",
      'write https:// before each member of etcd',
    );
  return { endpoints, given };
}

function parameter(text: string): [name: string, value: string] {
  const at = text.indexOf('=');
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

export async function etcdAccessOf({ given }: EtcdPlace): Promise<EtcdAccess> {
  const access: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    if (name === 'user') access[name] = value;
    else if (name === 'password') access[name] = (await read(name, value)).replace(/\r?\n$/, '');
    else access[name] = await readPem(name, value);
  }
  return access;
}

async function readPem(name: string, path: string): Promise<string> {
  const text = await read(name, path);
  const what = name === 'key' ? 'private key' : 'certificate';
  if (text.includes(`-----BEGIN ${name === 'key' ? '' : 'CERTIFICATE'}`)) return text;
  throw new RoceError('ERR_ROCE_MALFORMED', `'${name}' of etcd: ${path} has no ${what}`, 'name a file in PEM');
}

async function read(name: string, path: string): Promise<string> {
  const readFile = name === 'key' || name === 'password' ? readPrivateFile : readInputFile;
  return (await readFile(path, `'${name}' of etcd: `)).toString('utf8');
}
