/** The cluster that a command works with. */

import { localAddressTowards, type NicOptions, resolveHost, type SecureFlags, secureOf } from '@rocev2/command';
import { parseCount, RoceError } from 'rocev2/internal/core';
import { IpAddress } from 'rocev2/internal/packet';
import { openDevice } from 'rocev2/internal/verbs';
import { type ExtentsClient, type ExtentTransport, openExtents } from '../index.js';

/** Default TCP port of a manager. */
export const MANAGER_PORT = 18_528;

/** The manager of a command line. */
export interface ManagerPlace {
  /** Name or address. */
  readonly host: string;
  /** TCP port. */
  readonly port: number;
}

/** Reads `HOST`, `HOST:PORT` or `[IPV6]:PORT`. Throws ERR_ROCE_MALFORMED. */
function parseManager(text: string): ManagerPlace {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d+))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined) throw new RoceError('ERR_ROCE_MALFORMED', `'${text}' is no address`, 'write HOST:PORT');
  return { host, port: port === undefined ? MANAGER_PORT : parseCount(port, 1, 65_535) };
}

/** Reads the managers of a cluster, with commas between them. Throws ERR_ROCE_MALFORMED. */
export function parseManagers(text: string): readonly ManagerPlace[] {
  return text.split(',').map(parseManager);
}

/** Options of commands that ask a manager. */
export interface ClusterOptions extends NicOptions, SecureFlags {
  /** Where the manager is, or several of which one leads. */
  readonly manager: readonly ManagerPlace[];
  /** IP address of this side; default: from the routing table. */
  readonly bind?: IpAddress;
  /** What connections are made of. */
  readonly transport: ExtentTransport;
}

/** `HOST:PORT` with the addresses of the hosts, and commas between them; `host` is the first. Rejects with ERR_ROCE_CONNECT if a name has none. */
export async function managerAddress(managers: readonly ManagerPlace[]): Promise<{ host: IpAddress; text: string }> {
  const hosts = await Promise.all(managers.map(async ({ host }) => IpAddress.parse(await resolveHost(host))));
  const texts = hosts.map((host, k) => `${host.family === 6 ? `[${host}]` : host}:${managers[k].port}`);
  return { host: hosts[0], text: texts.join() };
}

/** Opens the streams of a cluster, does the work, and closes everything. Rejects with ERR_ROCE_CONNECT where there is no manager. */
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
