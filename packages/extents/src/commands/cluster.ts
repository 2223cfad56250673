import { localAddressTowards, type NicFlags, resolveHost, type SecureFlags, secureOf } from '@rocev2/command';
import { formatHostPort, type HostPort, parseHost } from 'rocev2/internal/core';
import { IpAddress } from 'rocev2/internal/packet';
import { openDevice } from 'rocev2/internal/verbs';
import { type ExtentsClient, type ExtentTransport, openExtents } from '../index.js';

export const MANAGER_PORT = 18_528;

function parseManager(text: string): HostPort {
  const { host, port = MANAGER_PORT } = parseHost(text);
  return { host, port };
}

export function parseManagers(text: string): readonly HostPort[] {
  return text.split(',').map(parseManager);
}

export interface ClusterOptions extends NicFlags, SecureFlags {
  readonly manager: readonly HostPort[];
  readonly bind?: IpAddress;
  readonly transport: ExtentTransport;
}

export async function managerAddress(addresses: readonly HostPort[]): Promise<{ host: IpAddress; text: string }> {
  const hosts = await Promise.all(addresses.map(async ({ host }) => IpAddress.parse(await resolveHost(host))));
  const texts = hosts.map((host, k) => formatHostPort(host.text, addresses[k].port));
  return { host: hosts[0], text: texts.join() };
}

export async function withCluster<T>(
  options: ClusterOptions,
  work: (client: ExtentsClient, manager: string) => Promise<T>,
): Promise<T> {
  const { manager, bind, transport, io, engine, spin } = options;
  const secure = await secureOf(options);
  const { host, text } = await managerAddress(manager);
  const address = (bind ?? (await localAddressTowards(host))).text;
  await using device = await openDevice({ address, udpPort: 0, io, engine, spin, ...secure });
  await using client = await openExtents({ device, manager: text, transport });
  return await work(client, text);
}
