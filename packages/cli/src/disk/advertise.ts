/** Where a server of a disk in a cluster tells the manager that it is. */

import { isStreamBackend } from '@rocev2/extents/internal';
import { formatHostPort, parseHost, RoceError } from 'rocev2/internal/core';
import type { IpAddress } from 'rocev2/internal/packet';

/** `HOST` or `HOST:PORT` as others reach this server. */
export interface Advertised {
  /** Name or address. */
  readonly host: string;
  /** Default: the port that it listens on. */
  readonly port?: number;
}

const LOOPBACK = '127.0.0.1';
/** Addresses that mean all of a host, and that nobody can connect to. */
const ANY = ['0.0.0.0', '::'];

/** Reads `HOST`, `HOST:PORT` or `[IPV6]:PORT`. Throws ERR_ROCE_MALFORMED, also for an address that nobody can connect to. */
export function parseAdvertised(text: string): Advertised {
  const { host, port } = parseHost(text);
  if (ANY.includes(host))
    throw new RoceError('ERR_ROCE_MALFORMED', `nobody can connect to ${host}`, 'name an address of this host');
  return { host, ...(port !== undefined && { port }) };
}

/** Options of a server that say where it is. */
export interface PlaceFlags {
  /** IP address of this side. */
  readonly bind?: IpAddress;
  /** As others reach it. */
  readonly advertise?: Advertised;
}

/** Checks the place of a server with these backends. Throws ERR_ROCE_CONFLICT if gateways could not find it, or nobody is told where it is. */
export function checkPlace({ bind, advertise }: PlaceFlags, backends: readonly string[]): void {
  if (!backends.some(isStreamBackend)) {
    if (advertise === undefined) return;
    const hint = 'leave it out; gateways are given the address by --connect';
    throw new RoceError('ERR_ROCE_CONFLICT', '--advertise is about a disk in a cluster, whose manager is told', hint);
  }
  if (advertise !== undefined || bind === undefined || !ANY.includes(bind.text)) return;
  const hint = 'add --advertise HOST with the address of this host that gateways reach, or --bind that address';
  throw new RoceError('ERR_ROCE_CONFLICT', `gateways are told where the disk is, and cannot connect to ${bind}`, hint);
}

/** What the manager is told of a server that listens on this port, `HOST:PORT`. */
export function advertisedAddress({ bind, advertise }: PlaceFlags, port: number): string {
  return formatHostPort(advertise?.host ?? bind?.text ?? LOOPBACK, advertise?.port ?? port);
}
