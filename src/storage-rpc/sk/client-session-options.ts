/** What a session at the client is told when it is made. */

import type { Clock } from '../../core/clock.js';
import type { RandomSource } from '../../core/random.js';
import type { ExpectedDisk } from './expected-disk.js';
import type { LeaseRequest } from './lease-request.js';
import { SK_INLINE_BYTES_MAX } from './request.js';
import type { WriteVerifierTracker } from './write-verifier-tracker.js';

/** Terms of a session. */
export interface ClientSessionOptions {
  /** For silence and time limits. */
  readonly clock: Clock;
  /** Makes the session id. */
  readonly random: RandomSource;
  /** Index of the server's disk; default 0. */
  readonly disk?: number;
  /** Writes up to here are sent with their request if the server agrees, 0..8192; default 8192. */
  readonly inlineWriteBytesMax?: number;
  /** Shared by sessions to one disk; default: one of its own. */
  readonly durability?: WriteVerifierTracker;
  /** Shared by sessions to one disk; default: one of its own, which takes any disk first. */
  readonly expected?: ExpectedDisk;
  /** Which disk, as whom, and to do what; shared by the sessions of a client. Default: one of its own, which shares the disk at the index. */
  readonly claim?: LeaseRequest;
  /** It has somebody to ask where the disk is, when the server has lost it: what the server did not do then goes on elsewhere. Default: that is an EIO. */
  readonly follows?: boolean;
  /** Default 16 MiB. */
  readonly inFlightBytesMax?: number;
  /** A silent connection is asked for a sign of life after so long; default 1 s. */
  readonly idleNs?: number;
  /** A connection that stays silent for so long has failed; default 3 s. */
  readonly silenceNs?: number;
  /** A request that is not answered for so long ends its connection; default 30 s. */
  readonly ioTimeoutNs?: number;
}

/** The limits unless the caller says otherwise. */
export const SESSION_DEFAULTS = {
  disk: 0,
  follows: false,
  inlineWriteBytesMax: SK_INLINE_BYTES_MAX,
  inFlightBytesMax: 16 << 20,
  idleNs: 1e9,
  silenceNs: 3e9,
  ioTimeoutNs: 30e9,
};

/** Bounds and times, all of them given. */
export type SessionLimits = typeof SESSION_DEFAULTS;
