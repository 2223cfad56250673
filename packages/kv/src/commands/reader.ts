import { localAddressTowards, type NicFlags, nicOf, resolveHost, type SecureFlags, secureOf } from '@rocev2/command';
import { parseHost } from 'rocev2/internal/core';
import { IpAddress } from 'rocev2/internal/packet';
import { openDevice, type RdmaDevice } from 'rocev2/internal/verbs';
import { type KvClient, type KvShards, openKv, openKvShards } from '../index.js';

export interface KvReaderOptions extends NicFlags, SecureFlags {
  readonly port: number;
  readonly bind?: IpAddress;
}

export type Reader = KvClient<Uint8Array> | KvShards<Uint8Array>;

export async function withReader<T>(
  host: string,
  options: KvReaderOptions,
  work: (kv: Reader, device: RdmaDevice) => Promise<T>,
): Promise<T> {
  const { port, bind } = options;
  const owners = await Promise.all(host.split(',').map((text) => ownerOf(text.trim(), port)));
  const address = bind ?? (await localAddressTowards(IpAddress.parse(owners[0].host)));
  await using device = await openDevice({
    address: address.text,
    udpPort: 0,
    ...nicOf(options),
    ...(await secureOf(options)),
  });
  await using kv =
    owners.length === 1 ? await openKv({ device, ...owners[0] }) : await openKvShards({ device, owners });
  return await work(kv, device);
}

async function ownerOf(text: string, defaultPort: number): Promise<{ readonly host: string; readonly port: number }> {
  const { host, port = defaultPort } = parseHost(text);
  return { host: await resolveHost(host), port };
}
