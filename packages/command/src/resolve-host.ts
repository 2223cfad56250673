import { lookup } from 'node:dns/promises';
import { RoceError } from 'rocev2/internal/core';

/** IPv4 is preferred, because servers wait at 127.0.0.1 by default. */
export async function resolveHost(host: string): Promise<string> {
  try {
    return (await lookup(host, { order: 'ipv4first' })).address;
  } catch (cause) {
    throw new RoceError('ERR_ROCE_CONNECT', `the host name '${host}' has no address`, 'check the name', { cause });
  }
}
