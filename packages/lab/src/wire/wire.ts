/**
 * A wire between two peers that do not know of it: a switch with two ports, on two network interfaces, two links of
 * datagrams or a relay. Fault rules match RoCEv2 packets only; everything else passes.
 */

import { RoceError } from 'rocev2/internal/core';
import {
  batchedUdpAvailable,
  openBatchedUdpPort,
  openUdpPort,
  parseUdpEndpoint,
  type UdpEndpoint,
} from 'rocev2/internal/dgram-ext';
import { nowNs } from 'rocev2/internal/driver';
import type { IpAddress } from 'rocev2/internal/packet';
import { DatagramLink } from '../live/datagram-link.js';
import type { FrameLink } from '../live/frame-link.js';
import { InterfaceLink, joinSuperFrames } from '../live/interface-link.js';
import { LinkedSwitch, type LinkedSwitchOptions } from '../live/linked-switch.js';
import { Relay } from './relay.js';

export const SIDES = ['a', 'b'] as const;

export type WireEnd =
  | { readonly interfaceName: string }
  | { readonly local: UdpEndpoint; readonly remote?: UdpEndpoint | undefined };

export function parseWireEnd(text: string): WireEnd {
  if (/^[^:,/\s]{1,15}$/.test(text)) return { interfaceName: text };
  const [local, remote, ...rest] = text.split(',');
  if (rest.length === 0 && /:\d+$/.test(local)) {
    return remote === undefined
      ? { local: parseUdpEndpoint(local) }
      : { local: parseUdpEndpoint(local), remote: parseUdpEndpoint(remote) };
  }
  throw new RoceError(
    'ERR_ROCE_MALFORMED',
    `'${text}' is not an end of a wire`,
    'write the name of a network interface, HOST:PORT, or HOST:PORT,REMOTEHOST:REMOTEPORT',
  );
}

export type WirePlace =
  | { readonly ends: readonly [WireEnd, WireEnd] }
  | {
      readonly relay: IpAddress;
      readonly to: IpAddress;
    };

export interface Wire {
  readonly switch: LinkedSwitch;
  readonly descriptions: readonly [string, string];
  close(): Promise<void>;
}

export async function openWire(place: WirePlace, options: Omit<LinkedSwitchOptions, 'ports'>): Promise<Wire> {
  const links = 'ends' in place ? await openEnds(place.ends) : await openRelay(place.relay, place.to);
  try {
    const ports = links.map((link, i) => ({ name: SIDES[i], link }));
    const linked = new LinkedSwitch({ ...options, ports });
    return {
      switch: linked,
      descriptions: [links[0].description, links[1].description],
      close: () => linked.close(),
    };
  } catch (error) {
    for (const link of links) await link.close();
    throw error;
  }
}

async function openEnds(ends: readonly [WireEnd, WireEnd]): Promise<readonly [FrameLink, FrameLink]> {
  const first = await openEnd(ends[0]);
  try {
    const second = await openEnd(ends[1]);
    if (first instanceof InterfaceLink && second instanceof InterfaceLink) joinSuperFrames(first, second);
    return [first, second];
  } catch (error) {
    await first.close();
    throw error;
  }
}

async function openEnd(end: WireEnd): Promise<FrameLink> {
  return 'interfaceName' in end ? new InterfaceLink(end.interfaceName) : DatagramLink.open(end.local, end.remote);
}

async function openRelay(address: IpAddress, to: IpAddress): Promise<readonly [FrameLink, FrameLink]> {
  if (address.family !== to.family || address.equals(to)) {
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      `a relay at ${address} cannot represent ${to}`,
      'both need addresses of one family, and different ones',
    );
  }
  const port = batchedUdpAvailable() === undefined ? openBatchedUdpPort({ address, nowNs }) : openUdpPort({ address });
  const relay = new Relay(port, to);
  await port.open();
  return [relay.client, relay.host];
}
