import { setTimeout as delay } from 'node:timers/promises';
import {
  localAddressTowards,
  type NicFlags,
  nicOf,
  type Output,
  resolveHost,
  type SecureFlags,
  secureOf,
} from '@rocev2/command';
import { formatHostPort, type HostPort, NS_PER_S, parseHost } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import { IpAddress } from 'rocev2/internal/packet';
import { openDevice } from 'rocev2/internal/verbs';
import { type ExtentsClient, type ExtentTransport, openExtents } from '../index.js';
import { isWithoutManager } from '../live/peers.js';

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
  /** How long to wait for a manager, nanoseconds. */
  readonly wait: number;
}

const RETRY_MS = 250;

export async function managerAddress(addresses: readonly HostPort[]): Promise<{ host: IpAddress; text: string }> {
  const hosts = await Promise.all(addresses.map(async ({ host }) => IpAddress.parse(await resolveHost(host))));
  const texts = hosts.map((host, k) => formatHostPort(host.text, addresses[k].port));
  return { host: hosts[0], text: texts.join() };
}

export async function withCluster<T>(
  options: ClusterOptions,
  output: Output,
  work: (client: ExtentsClient, manager: string) => Promise<T>,
): Promise<T> {
  const { manager, bind, transport } = options;
  const secure = await secureOf(options);
  const { host, text } = await managerAddress(manager);
  const address = (bind ?? (await localAddressTowards(host))).text;
  await using device = await openDevice({ address, udpPort: 0, ...nicOf(options), ...secure });
  const open = () => openExtents({ device, manager: text, transport });
  await using client = await whenManaged(open, output, options.wait);
  return await work(client, text);
}

/** Tries again until a manager answers, `waitNs` is over, or the command is interrupted. Says once that it waits. */
export async function whenManaged<T>(
  open: () => Promise<T>,
  output: Output,
  waitNs = Number.POSITIVE_INFINITY,
): Promise<T> {
  const untilNs = nowNs() + waitNs;
  const most = Number.isFinite(waitNs) ? `, ${waitNs / NS_PER_S} s at most` : '';
  for (let isTold = false; ; isTold = true) {
    try {
      return await open();
    } catch (error) {
      if (!isWithoutManager(error) || nowNs() >= untilNs || output.io.interrupted.aborted) throw error;
      if (!isTold) output.warn(`waiting for a manager${most}: ${(error as Error).message}`);
      await delay(RETRY_MS, undefined, { signal: output.io.interrupted }).catch(() => {});
    }
  }
}
