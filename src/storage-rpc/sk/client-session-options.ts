import type { Clock } from '../../core/clock.js';
import type { RandomSource } from '../../core/random.js';
import type { ExpectedDisk } from './expected-disk.js';
import type { LeaseRequest } from './lease-request.js';
import { SK_INLINE_BYTES_MAX } from './request.js';
import type { WriteVerifierTracker } from './write-verifier-tracker.js';

export interface ClientSessionOptions {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly disk?: number;
  /** Writes up to here are sent with their request if the server agrees, 0..8192; default 8192. */
  readonly inlineWriteBytesMax?: number;
  readonly durability?: WriteVerifierTracker;
  readonly expected?: ExpectedDisk;
  readonly claim?: LeaseRequest;
  /** The client can look up the disk when the server has lost it: unfinished requests continue elsewhere. */
  readonly follows?: boolean;
  /** Default 16 MiB. */
  readonly inFlightBytesMax?: number;
  readonly idleNs?: number;
  readonly silenceNs?: number;
  readonly ioTimeoutNs?: number;
}

export const SESSION_DEFAULTS = {
  disk: 0,
  follows: false,
  inlineWriteBytesMax: SK_INLINE_BYTES_MAX,
  inFlightBytesMax: 16 << 20,
  idleNs: 1e9,
  silenceNs: 3e9,
  ioTimeoutNs: 30e9,
};

export type SessionLimits = typeof SESSION_DEFAULTS;
