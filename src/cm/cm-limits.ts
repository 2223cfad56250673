import { checkOptions, type OptionNames, shown } from '../core/arguments.js';
import { type Optional, withDefaults } from '../core/defaults.js';
import { RoceError } from '../core/errors.js';
import type { Pace } from '../core/token-bucket.js';

/**
 * Bounds of a connection manager. All are whole numbers of at least 1. Requests for datagram services are counted apart
 * from connections.
 */
export interface CmLimits {
  /**
   * Most endpoints, including those in TIMEWAIT. Beyond: `evicted`, else `deferred`. Also the most answers to requests
   * for datagram services that the manager keeps in case a peer repeats a request. Beyond: the oldest answer is
   * forgotten.
   */
  readonly endpoints: number;
  /**
   * Most pending requests of all peers, for connections and for datagram services. An eighth is for peers that have
   * connected before. Beyond: `evicted`, else `deferred`.
   */
  readonly halfOpen: number;
  /** The same of one address. */
  readonly halfOpenPerAddress: number;
  /** Most connections from one address. Beyond: REJ 3. */
  readonly connectionsPerAddress: number;
  /**
   * Most endpoints in TIMEWAIT, and kept answers, of one address. Beyond: the oldest ends; endpoints are counted in
   * `timewaitCut`.
   */
  readonly timewaitPerAddress: number;
  /**
   * How long a REP waits for its RTU, in ms. An MRA can extend it once, by at most 69 s. Beyond: ERR_ROCE_CONNECT,
   * counted in `expired`.
   */
  readonly halfOpenMs: number;
}

export const LIMITS_DEFAULT: CmLimits = {
  endpoints: 4096,
  halfOpen: 512,
  halfOpenPerAddress: 128,
  connectionsPerAddress: 1024,
  timewaitPerAddress: 512,
  halfOpenMs: 20_000,
};

const LIMIT_NAMES: OptionNames<CmLimits> = {
  endpoints: true,
  halfOpen: true,
  halfOpenPerAddress: true,
  connectionsPerAddress: true,
  timewaitPerAddress: true,
  halfOpenMs: true,
};

export function checkedLimits(limits: Optional<CmLimits> = {}): CmLimits {
  checkOptions<Optional<CmLimits>>('limits of ConnectionManager.open', limits, LIMIT_NAMES);
  for (const [name, value] of Object.entries(limits)) {
    if (value === undefined || (Number.isSafeInteger(value) && value >= 1)) continue;
    throw new RoceError(
      'ERR_ROCE_OUT_OF_RANGE',
      `the limit ${name} is ${shown(value)}`,
      'it must be a whole number of at least 1',
    );
  }
  return withDefaults(LIMITS_DEFAULT, limits);
}

/** Validated addresses that are remembered; the one that was silent longest is forgotten first. */
export const VALIDATED_ADDRESSES_MAX = 4096;

/**
 * Unsolicited datagrams (retransmissions, DREQs) to all peers without a validated address: in a burst, and per second.
 */
export const UNASKED_PACE: Pace = { burst: 64, perSecond: 16 };
