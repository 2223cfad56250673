import { isStreamBackend } from '@rocev2/extents/internal';
import { formatHostPort, parseHost, RoceError } from 'rocev2/internal/core';
import type { IpAddress } from 'rocev2/internal/packet';

export interface Advertised {
  readonly host: string;
  readonly port?: number;
}

const LOOPBACK = '127.0.0.1';
const ANY = ['0.0.0.0', '::'];

export function parseAdvertised(text: string): Advertised {
  const { host, port } = parseHost(text);
  if (ANY.includes(host))
    throw new RoceError('ERR_ROCE_MALFORMED', `nobody can connect to ${host}`, 'name an address of this host');
  return { host, ...(port !== undefined && { port }) };
}

export interface PlaceFlags {
  readonly bind?: IpAddress;
  readonly advertise?: Advertised;
}

export function checkPlace({ bind, advertise }: PlaceFlags, backends: readonly string[]): void {
  if (!backends.some(isStreamBackend)) {
    if (advertise === undefined) return;
    const hint = 'leave it out; gateways get the address by --connect';
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      '--advertise needs a disk of a cluster, whose manager passes the address to gateways',
      hint,
    );
  }
  if (advertise !== undefined || bind === undefined || !ANY.includes(bind.text)) return;
  const hint = 'add --advertise HOST with the address of this host that gateways reach, or --bind that address';
  throw new RoceError(
    'ERR_ROCE_CONFLICT',
    `the manager would pass gateways an address to which they cannot connect: ${bind}`,
    hint,
  );
}

export function advertisedAddress({ bind, advertise }: PlaceFlags, port: number): string {
  return formatHostPort(advertise?.host ?? bind?.text ?? LOOPBACK, advertise?.port ?? port);
}
