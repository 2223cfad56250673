/** A reader of a store, for commands that need one. */

import { localAddressTowards, type NicOptions, resolveHost, type SecureFlags, secureOf } from '@rocev2/command';
import { parseHost } from 'rocev2/internal/core';
import { IpAddress } from 'rocev2/internal/packet';
import { openDevice } from 'rocev2/internal/verbs';
import { type KvClient, type KvShards, openKv, openKvShards } from '../index.js';

/** Options of commands that reach a store. */
export interface KvReaderOptions extends NicOptions, SecureFlags {
  /** TCP port of the owner. */
  readonly port: number;
  /** IP address of this side; default: from the routing table. */
  readonly bind?: IpAddress;
}

/** A store of one owner or of several. */
export type Reader = KvClient<Uint8Array> | KvShards<Uint8Array>;

/**
 * Opens the store of `host`, or of several owners (`HOST,HOST:PORT`), does the work, and closes everything. Rejects with ERR_ROCE_CONNECT where there is no
 * owner.
 */
export async function withReader<T>(
  host: string,
  { port, bind, io, engine, spin, ...rest }: KvReaderOptions,
  work: (kv: Reader) => Promise<T>,
): Promise<T> {
  const owners = await Promise.all(host.split(',').map((text) => ownerOf(text.trim(), port)));
  const address = bind ?? (await localAddressTowards(IpAddress.parse(owners[0].host)));
  await using device = await openDevice({
    address: address.text,
    udpPort: 0,
    io,
    engine,
    spin,
    ...(await secureOf(rest)),
  });
  await using kv =
    owners.length === 1 ? await openKv({ device, ...owners[0] }) : await openKvShards({ device, owners });
  return await work(kv);
}

/** `HOST`, `HOST:PORT` or `[IPV6]:PORT`. An IPv6 address without a port needs no brackets. */
async function ownerOf(text: string, defaultPort: number): Promise<{ readonly host: string; readonly port: number }> {
  const { host, port = defaultPort } = parseHost(text);
  return { host: await resolveHost(host), port };
}
