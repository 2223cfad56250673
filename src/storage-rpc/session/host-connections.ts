/** All sessions of disks to one storage host: they are for one disk, and share its lease, its identity and what is known of its durability. */

import { pause } from '../../core/clock.js';
import { NS_PER_S } from '../../core/units.js';
import type { SkClientChannel } from '../sk/channel.js';
import { ClientSession } from '../sk/client-session.js';
import type { ClientSessionOptions } from '../sk/client-session-options.js';
import { ExpectedDisk } from '../sk/expected-disk.js';
import { DiskInUse, LeaseRequest, type LeaseRequestOptions } from '../sk/lease-request.js';
import { WriteVerifierTracker } from '../sk/write-verifier-tracker.js';
import { HostSessions, type HostSessionsOptions } from './host-sessions.js';
import { probe } from './probe.js';
import type { Reconnector } from './reconnector.js';

/** How to reach a host, and the terms of path, transitions and sessions; each has its defaults. */
export interface HostConnectionsOptions extends HostSessionsOptions<SkClientChannel> {
  /** Terms of each session; see {@link ClientSessionOptions}. */
  readonly session?: Omit<ClientSessionOptions, 'clock' | 'random' | 'durability' | 'expected' | 'claim'>;
  /** Which disk, and to do what; default: the disk of the session's index, shared. */
  readonly claim?: Omit<LeaseRequestOptions, 'isPatient'>;
  /** Wait for as long as another client writes to the disk. Default: only for a client that is gone, until its lease ends. */
  readonly standby?: boolean;
  /** UUID of the disk that the host must have; default: the disk that the first session finds. */
  readonly uuid?: string;
}

/** A session of a disk, with its reconnector. */
export type DiskReconnector = Reconnector<SkClientChannel, ClientSession>;

/** A disk that is in use is asked for again after so long. */
const STANDBY_NS = 1e9;

/** The sessions to one host. */
export class HostConnections extends HostSessions<SkClientChannel, ClientSession> {
  /** What sessions know of the durability of the disk; they share it. */
  readonly durability = new WriteVerifierTracker();
  readonly #options: HostConnectionsOptions;
  readonly #expected: ExpectedDisk;
  readonly #claim: LeaseRequest;

  constructor(options: HostConnectionsOptions) {
    super(options);
    this.#options = options;
    this.#expected = new ExpectedDisk(options.uuid);
    this.#claim = new LeaseRequest(options.random, { ...options.claim, isPatient: options.standby === true });
  }

  protected override newSession(): ClientSession {
    return new ClientSession({ ...this.#sessionTerms, durability: this.durability });
  }

  protected override probe(channel: SkClientChannel): Promise<number> {
    return probe(channel, this.#sessionTerms);
  }

  /** Makes the first connection, as soon as the disk is free. Rejects with a {@link DiskInUse} where that is not waited for. */
  protected override async connect(reconnector: DiskReconnector): Promise<void> {
    const { clock, standby = false, onNotice = () => {}, onReach } = this.#options;
    for (let isWaiting = false; ; ) {
      try {
        await reconnector.connect();
        return;
      } catch (error) {
        if (this.isClosed) throw error;
        if (!(error instanceof DiskInUse)) onReach?.(error as Error);
        if (error instanceof DiskInUse) {
          const { holder, remainingNs } = error;
          if (holder.isConnected && !standby) throw error;
          const until = standby
            ? 'standing by until it is free'
            : `its writer is gone, and its lease ends in ${Math.ceil(remainingNs / NS_PER_S)} s`;
          if (!isWaiting) onNotice(`${error.what}: ${until}`);
          isWaiting = true;
        } else if (!standby || !isWaiting) throw error; // Who stands by also waits for the server.
        await pause(clock, STANDBY_NS);
      }
    }
  }

  get #sessionTerms() {
    const { clock, random, session } = this.#options;
    return { clock, random, expected: this.#expected, claim: this.#claim, ...session };
  }
}
