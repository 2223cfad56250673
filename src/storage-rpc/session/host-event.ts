import { formatNs, NS_PER_S } from '../../core/units.js';

/** An event of the path to a storage server. */
export type HostEvent =
  | {
      /** Which event. */
      readonly type: 'failover';
      /** Why. */
      readonly reason: string;
    }
  | {
      /** Which event. */
      readonly type: 'return';
    }
  | {
      /** Which event. */
      readonly type: 'outage';
      /** Why the last attempt to connect failed. */
      readonly reason: string;
      /** The server answers, with another disk. */
      readonly isWrongDisk: boolean;
      /** Requests fail after this many nanoseconds; undefined: they wait indefinitely. */
      readonly giveUpNs: number | undefined;
    }
  | {
      /** Which event. */
      readonly type: 'give-up';
      /** How long the outage has lasted, nanoseconds. */
      readonly outageNs: number;
    }
  | {
      /** Which event. */
      readonly type: 'fenced';
      /** Who. */
      readonly reason: string;
    }
  | {
      /** Which event. */
      readonly type: 'back';
      /** How long the outage lasted, nanoseconds. */
      readonly outageNs: number;
    };

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
