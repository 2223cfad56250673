/** What the parts of the connection protocol share. */

import type { RandomSource } from '../core/random.js';
import type { IpAddress } from '../packet/address.js';
import type { CmLimits } from './cm-limits.js';
import type { EndpointTable, TableCounters } from './endpoint-table.js';
import type { IpEndpoints } from './ip-addressing.js';
import type { MadSender, SenderCounters } from './mad-sender.js';
import type { CmTiming } from './timing.js';

/** What a `CmProtocol` works with. */
export interface CmProtocolOptions {
  /** IP address of this side. */
  readonly address: IpAddress;
  /** Largest path MTU this side can do, as IBTA code. */
  readonly pathMtuCodeMax: number;
  /** For communication IDs and the CA GUID. */
  readonly random: RandomSource;
  /** Timeouts and retries. */
  readonly timing: CmTiming;
  /** DSCP 0..63 of connections that this side asks for. */
  readonly dscp: number;
  /** How much unauthenticated peers may hold. */
  readonly limits: CmLimits;
  /** Takes requests whose addresses are others than those of their datagrams, as behind NAT. */
  readonly anyClaimedAddress: boolean;
  /** Sends a MAD to QP1 of an address; it may be lost. */
  readonly send: (to: IpAddress, mad: Uint8Array) => void;
}

/** Datagrams of a connection manager since it was opened, and what its bounds did. */
export interface CmCounters extends TableCounters, SenderCounters {
  /** All that came to QP1. */
  received: number;
  /** Not a datagram of connection management, not one of the known version, or one that names an impossible queue pair. */
  malformed: number;
  /** From an address that no single host has: 0.0.0.0, broadcast, multicast. Not answered. */
  badAddress: number;
  /** Known, but seen before. */
  duplicates: number;
  /** Of `sent`: repeated because no answer came in time. */
  retries: number;
  /** Requests that were refused for what they say, or for want of room. */
  refused: number;
  /** Of `refused`: for addresses that are not those of the datagram. */
  refusedAddress: number;
  /** Half-open connections whose peer never said that it is ready. */
  expired: number;
}

/** Of one `CmProtocol`. */
export interface ProtocolParts {
  /** As they were given. */
  readonly options: CmProtocolOptions;
  /** Tells this instance from an earlier one at the same address: peers remember its connections by it. */
  readonly caGuid: bigint;
  /** Written by all parts. */
  readonly counters: CmCounters;
  /** Its endpoints. */
  readonly table: EndpointTable;
  /** The way out. */
  readonly mads: MadSender;
}

/** The IP addressing header of a request names the addresses of its datagram, or it need not. */
export function claimsRightly(options: CmProtocolOptions, source: IpAddress, claimed: IpEndpoints): boolean {
  if (!claimed.source.isUnicast || !claimed.destination.isUnicast) return false;
  if (options.anyClaimedAddress) return true;
  return claimed.source.equals(source) && claimed.destination.equals(options.address);
}

/** No private data. */
export const NO_DATA: Uint8Array = new Uint8Array(0);
/** The default partition, with full membership. */
export const DEFAULT_PKEY = 0xffff;
/** QPNs below are those of management (QP0, QP1) and no ends of connections. */
export const QPN_MIN = 2;
