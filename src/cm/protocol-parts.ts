import type { RandomSource } from '../core/random.js';
import type { IpAddress } from '../packet/address.js';
import type { CmLimits } from './cm-limits.js';
import type { EndpointTable, TableCounters } from './endpoint-table.js';
import type { IpEndpoints } from './ip-addressing.js';
import type { MadSender, SenderCounters } from './mad-sender.js';
import type { CmTiming } from './timing.js';

export interface CmProtocolOptions {
  readonly address: IpAddress;
  readonly pathMtuCodeMax: number;
  readonly random: RandomSource;
  readonly timing: CmTiming;
  /** DSCP 0..63 of connections that this side asks for. */
  readonly dscp: number;
  /** How much unauthenticated peers may hold. */
  readonly limits: CmLimits;
  readonly anyClaimedAddress: boolean;
  readonly send: (to: IpAddress, mad: Uint8Array) => void;
}

/** Datagrams of a connection manager since it was opened, and what its bounds did. */
export interface CmCounters extends TableCounters, SenderCounters {
  /** All that came to QP1. */
  received: number;
  /**
   * Not a datagram of connection management, not one of the known version, or one that names an impossible queue pair.
   */
  malformed: number;
  /** From an address that no single host has: 0.0.0.0, broadcast, multicast. Not answered. */
  badAddress: number;
  /** Known, but seen before. */
  duplicates: number;
  /** Of `sent`: repeated because no answer came in time. */
  retries: number;
  /** Requests refused for their content or for lack of room. */
  refused: number;
  /** Of `refused`: for addresses that are not those of the datagram. */
  refusedAddress: number;
  /** Half-open connections whose peer never reported that it is ready. */
  expired: number;
}

export interface ProtocolParts {
  readonly options: CmProtocolOptions;
  /** Tells this instance from an earlier one at the same address: peers key its connections by it. */
  readonly caGuid: bigint;
  readonly counters: CmCounters;
  readonly table: EndpointTable;
  readonly mads: MadSender;
}

export function claimsRightly(options: CmProtocolOptions, source: IpAddress, claimed: IpEndpoints): boolean {
  if (!claimed.source.isUnicast || !claimed.destination.isUnicast) return false;
  if (options.anyClaimedAddress) return true;
  return claimed.source.equals(source) && claimed.destination.equals(options.address);
}

export const NO_DATA: Uint8Array = new Uint8Array(0);
export const DEFAULT_PKEY = 0xffff;
export const QPN_MIN = 2;
