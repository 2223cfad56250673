/** Host names of the command line. */

import { lookup } from 'node:dns/promises';
import { RoceError } from '../core/errors.js';

/**
 * An address for a name or a literal address. IPv4 where there is a choice: servers wait at 127.0.0.1 unless told otherwise.
 * Rejects with ERR_ROCE_CONNECT when nobody knows the name.
 */
export async function resolveHost(host: string): Promise<string> {
  try {
    return (await lookup(host, { order: 'ipv4first' })).address;
  } catch (cause) {
    throw new RoceError('ERR_ROCE_CONNECT', `no address is known for '${host}'`, 'is the name right?', { cause });
  }
}
