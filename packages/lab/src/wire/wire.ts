/**
 * A wire between two peers that do not know of it: a switch with two ports, on two network interfaces, two links of datagrams or a relay. Fault rules
 * match RoCEv2 packets only; everything else passes.
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

/** Names of the sides, as fault rules and counters call them. */
export const SIDES = ['a', 'b'] as const;

/** One side: a network interface, or a link of datagrams. */
export type WireEnd =
  | { readonly interfaceName: string }
  | { readonly local: UdpEndpoint; readonly remote?: UdpEndpoint | undefined };

/** `eth0`, or `HOST:PORT[,REMOTEHOST:REMOTEPORT]`. Throws ERR_ROCE_MALFORMED. */
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

/** Where a wire is. */
export type WirePlace =
  | { readonly ends: readonly [WireEnd, WireEnd] }
  | {
      /** The address that the relay has. */
      readonly relay: IpAddress;
      /** The peer that it stands for; the other one is who speaks first. */
      readonly to: IpAddress;
    };

/** A wire at work. */
export interface Wire {
  /** What passes the frames on, and counts them. */
  readonly switch: LinkedSwitch;
  /** Of sides a and b, for people. */
  readonly descriptions: readonly [string, string];
  /** Ends it. Safe to call twice. */
  close(): Promise<void>;
}

/**
 * Opens both ends and lets frames pass. Rejects with ERR_ROCE_IO, ERR_ROCE_NOT_FOUND or ERR_ROCE_UNSUPPORTED where an end cannot be had, and with
 * ERR_ROCE_CONFLICT for one interface twice; then nothing stays open.
 */
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
      `a relay at ${address} cannot stand for ${to}`,
      'both need addresses of one family, and different ones',
    );
  }
  const port = batchedUdpAvailable() === undefined ? openBatchedUdpPort({ address, nowNs }) : openUdpPort({ address });
  const relay = new Relay(port, to);
  await port.open();
  return [relay.client, relay.host];
}
