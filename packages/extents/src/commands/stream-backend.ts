import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { backendParameters, localAddressTowards, type Output, type SecureFlags, secureOf } from '@rocev2/command';
import { RpcError } from '@rocev2/rpc';
import { checkOptions, type HostPort, NS_PER_S, RoceError } from 'rocev2/internal/core';
import type { BlockDevice } from 'rocev2/internal/disk';
import { nowNs, SYSTEM_CLOCK } from 'rocev2/internal/driver';
import type { IpAddress } from 'rocev2/internal/packet';
import { openDevice } from 'rocev2/internal/verbs';
import { StandbyDisk } from '../disk/standby-disk.js';
import { type DiskOwner, type ExtentsClient, type ExtentTransport, openExtents, type StreamDisk } from '../index.js';
import { EXTENT_TRANSPORTS } from '../live/peer-connector.js';
import { isWithoutManager } from '../live/peers.js';
import { MANAGER_PORT, managerAddress, parseManagers, whenManaged } from './cluster.js';
import { readFailureTeller } from './read-failures.js';

/** A lease ends after 30 seconds without its owner. */
const WAIT_S = 45;
const RETRY_MS = 500;

export interface StreamPlace {
  readonly disk: string;
  readonly manager: readonly HostPort[];
  readonly takeOver: boolean;
  readonly keys: SecureFlags;
  readonly transport: ExtentTransport;
}

type Parameter = 'take-over' | 'transport' | 'psk' | 'cert' | 'key' | 'ca';
const PARAMETERS = { 'take-over': true, transport: true, psk: true, cert: true, key: true, ca: true } as const;

export function isStreamBackend(text: string): boolean {
  return text.startsWith('stream:');
}

export function parseStreamBackend(text: string): StreamPlace {
  const match = /^stream:([^@?]+)(?:@([^?]+))?(?:\?(.*))?$/.exec(text);
  const given: Partial<Record<Parameter, string>> = backendParameters(match?.[3]);
  const { 'take-over': takeOver, transport: named = 'auto', ...keys } = given;
  const transport = EXTENT_TRANSPORTS.find((name) => name === named);
  const isWithoutValue = Object.values(keys).includes('') || (takeOver ?? '') !== '';
  if (match === null || isWithoutValue || transport === undefined) {
    const form = `stream:NAME@HOST[:PORT], followed by ?take-over to fence another owner, ?psk=FILE for a cluster with keys, ?transport=${EXTENT_TRANSPORTS.join('|')}, or several joined by &`;
    throw new RoceError('ERR_ROCE_MALFORMED', `'${text}' is not a disk in a cluster`, form);
  }
  checkOptions('a disk in a cluster', given, PARAMETERS);
  const [, disk, manager = `127.0.0.1:${MANAGER_PORT}`] = match;
  return { disk, manager: parseManagers(manager), takeOver: takeOver !== undefined, keys, transport };
}

export interface OpenedCluster extends AsyncDisposable {
  readonly client: ExtentsClient;
  readonly host: IpAddress;
}

/** Waits for a manager as long as it takes. */
export async function openClusterOf(
  place: Omit<StreamPlace, 'disk' | 'takeOver'>,
  keys: SecureFlags,
  output: Output,
): Promise<OpenedCluster> {
  const { manager, keys: ownKeys, transport } = place;
  const { host, text: address } = await managerAddress(manager);
  const secure = await secureOf(Object.keys(ownKeys).length > 0 ? ownKeys : keys);
  const own = (await localAddressTowards(host)).text;
  const device = await openDevice({ address: own, udpPort: 0, io: 'auto', ...secure });
  try {
    const client = await whenManaged(() => openExtents({ device, manager: address, transport }), output);
    return {
      client,
      host,
      [Symbol.asyncDispose]: async () => {
        await client.close();
        await device.close();
      },
    };
  } catch (error) {
    await device.close();
    throw error;
  }
}

/** A disk in a cluster, and the objects that were opened for it. */
interface OpenedStream<D extends BlockDevice> extends AsyncDisposable {
  readonly disk: D;
}

async function openWith<D extends BlockDevice>(
  text: string,
  { keys, output }: { readonly keys: SecureFlags; readonly output: Output },
  work: (client: ExtentsClient, place: StreamPlace) => Promise<D>,
): Promise<OpenedStream<D>> {
  const place = parseStreamBackend(text);
  const cluster = await openClusterOf(place, keys, output);
  try {
    const disk = await work(cluster.client, place);
    return {
      disk,
      [Symbol.asyncDispose]: async () => {
        await disk.close();
        await cluster[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}

export function openStreamBackend(text: string, keys: SecureFlags, output: Output): Promise<OpenedStream<StreamDisk>> {
  return openWith(text, { keys, output }, async (client, place) => {
    const disk = await openWhenFree(client, place, output, readFailureTeller(output));
    void disk.ended.then(() => noteLoss(disk, client, output));
    return disk;
  });
}

async function noteLoss(disk: StreamDisk, client: ExtentsClient, output: Output): Promise<void> {
  const lost = disk.notOwner;
  if (lost === undefined) return; // It was closed.
  const { name } = disk.metadata;
  const { owner } = await client.diskOwner(name).catch((): DiskOwner => ({}));
  const what = owner === undefined ? lost.message.replace(/^EIO: /, '') : `${owner} has taken over the disk '${name}'`;
  output.warn(`FENCED: ${what}: requests fail with EIO from now on (end what uses the disk here, and this program)`);
}

export function openStandingBackend(
  text: string,
  keys: SecureFlags,
  output: Output,
): Promise<OpenedStream<StandbyDisk>> {
  return openWith(text, { keys, output }, async (client, place) => {
    const name = place.disk;
    const onUnreadable = readFailureTeller(output);
    const onNotice = (notice: string) => output.note(notice);
    const disk = await openWhenFree(client, place, output, onUnreadable);
    const reopen = async () => {
      const { owner } = await client.diskOwner(name);
      // After a failed attempt the manager may already have granted it.
      const isFree = owner === undefined || owner === ownName();
      return isFree ? client.openDisk(name, { owner: ownName(), onUnreadable, onNotice }) : undefined;
    };
    return new StandbyDisk(disk, {
      clock: SYSTEM_CLOCK,
      retryMs: RETRY_MS,
      reopen,
      onNotice,
    });
  });
}

function ownName(): string {
  return `rocev2, process ${process.pid} on ${hostname()}`;
}

async function openWhenFree(
  client: ExtentsClient,
  { disk: name, takeOver }: StreamPlace,
  output: Output,
  onUnreadable: (error: Error) => void,
): Promise<StreamDisk> {
  const owner = ownName();
  const onNotice = (notice: string) => output.note(notice);
  let stopNs = Number.POSITIVE_INFINITY;
  for (let told = ''; ; ) {
    try {
      return await client.openDisk(name, { owner, takeOver, onUnreadable, onNotice });
    } catch (error) {
      const isBusy = error instanceof RpcError && error.remoteCode === 'BUSY';
      if (!isBusy && !isWithoutManager(error)) throw error;
      if (nowNs() > stopNs)
        throw new RoceError(
          'ERR_ROCE_BUSY',
          `the disk '${name}' is in use, and its owner renews the lease: ${(error as Error).message}`,
          'end that program, or take the disk over with ?take-over',
        );
      // A manager that starts again counts leases from its start.
      stopNs = isBusy ? Math.min(stopNs, nowNs() + WAIT_S * NS_PER_S) : Number.POSITIVE_INFINITY;
      const what = isBusy ? 'its lease to end (?take-over does not wait)' : 'a manager';
      if (what !== told) output.warn(`${(error as Error).message}; waiting for ${what}`);
      told = what;
      await delay(RETRY_MS, undefined, { signal: output.io.interrupted });
    }
  }
}
