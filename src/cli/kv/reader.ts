/** A reader of a store, for commands that need one. */

import { type KvClient, openKv } from '../../kv/index.js';
import { IpAddress } from '../../packet/address.js';
import { openDevice } from '../../verbs/open-device.js';
import { localAddressTowards } from '../local-address.js';
import type { NicOptions } from '../nic-options.js';
import { resolveHost } from '../resolve-host.js';

/** Options of commands that reach a store. */
export interface KvReaderOptions extends NicOptions {
  /** TCP port of the owner. */
  readonly port: number;
  /** IP address of this side; default: from the routing table. */
  readonly bind?: IpAddress;
}

/** Opens the store of `host`, does the work, and closes everything. Rejects with ERR_ROCE_CONNECT where there is no owner. */
export async function withReader<T>(
  host: string,
  { port, bind, io, engine, spin }: KvReaderOptions,
  work: (kv: KvClient<Uint8Array>) => Promise<T>,
): Promise<T> {
  const peer = IpAddress.parse(await resolveHost(host));
  const address = bind ?? (await localAddressTowards(peer));
  await using device = await openDevice({ address: address.text, udpPort: 0, io, engine, spin });
  await using kv = await openKv({ device, host: peer.text, port });
  return await work(kv);
}
