/** What happens to the path to a host, for programs, and as sentences for people. */

import { formatNs, NS_PER_S } from '../../core/units.js';

/** Something happened to the path to a storage server. */
export type HostEvent =
  /** RDMA has failed; its sessions go over TCP. */
  | {
      /** Which event. */
      readonly type: 'failover';
      /** Why. */
      readonly reason: string;
    }
  /** RDMA was proven and is in use again. */
  | {
      /** Which event. */
      readonly type: 'return';
    }
  /** No transport reaches the server, or it has another disk; requests wait. Once for each outage, and again when `isWrongDisk` changes. */
  | {
      /** Which event. */
      readonly type: 'outage';
      /** Why the last attempt to connect failed. */
      readonly reason: string;
      /** The server answers, with another disk. */
      readonly isWrongDisk: boolean;
      /** Requests fail after so long, nanoseconds; undefined: they wait for ever. */
      readonly giveUpNs: number | undefined;
    }
  /** The outage has lasted for `giveUpNs`: requests fail until the server is back. */
  | {
      /** Which event. */
      readonly type: 'give-up';
      /** How long the outage has lasted, nanoseconds. */
      readonly outageNs: number;
    }
  /** Another client has taken over the disk: requests fail, for good. */
  | {
      /** Which event. */
      readonly type: 'fenced';
      /** Who. */
      readonly reason: string;
    }
  /** Every session has a connection again. */
  | {
      /** Which event. */
      readonly type: 'back';
      /** How long the outage lasted, nanoseconds. */
      readonly outageNs: number;
    };

/** The sentence for the operator; undefined where there is nothing that he would have to know or do. */
export function noticeOf(event: HostEvent): string | undefined {
  switch (event.type) {
    case 'outage': {
      if (event.isWrongDisk) return `REFUSED: ${event.reason}; requests wait for the right disk`;
      const { giveUpNs = Number.POSITIVE_INFINITY } = event;
      const limit =
        giveUpNs === Number.POSITIVE_INFINITY ? 'requests wait for it' : `requests wait for ${time(giveUpNs)}`;
      return `the storage server cannot be reached: ${event.reason}; ${limit}`;
    }
    case 'give-up':
      return `no storage server for ${time(event.outageNs)}: requests fail until it is back`;
    case 'fenced':
      return `FENCED: ${event.reason}: requests fail from now on`;
    case 'back':
      return `the storage server is back after ${time(event.outageNs)}`;
    default:
      return undefined;
  }
}

function time(ns: number): string {
  return ns < 10 * NS_PER_S ? formatNs(ns) : `${Math.round(ns / NS_PER_S)} s`;
}
