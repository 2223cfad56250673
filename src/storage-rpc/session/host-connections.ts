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

export interface HostConnectionsOptions extends HostSessionsOptions<SkClientChannel> {
  readonly session?: Omit<ClientSessionOptions, 'clock' | 'random' | 'durability' | 'expected' | 'claim'>;
  readonly claim?: Omit<LeaseRequestOptions, 'isPatient'>;
  readonly standby?: boolean;
  readonly uuid?: string;
}

/** A session of a disk, with its reconnector. */
export type DiskReconnector = Reconnector<SkClientChannel, ClientSession>;

const STANDBY_NS = 1e9;

export class HostConnections extends HostSessions<SkClientChannel, ClientSession> {
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
        } else if (!standby || !isWaiting) throw error;
        await pause(clock, STANDBY_NS);
      }
    }
  }

  get #sessionTerms() {
    const { clock, random, session } = this.#options;
    return { clock, random, expected: this.#expected, claim: this.#claim, ...session };
  }
}
