/**
 * Bounds the queue pairs of peers whose set-up is not complete: each holds 1.2 MiB. Peers wait for a slot. One that
 * makes no progress loses its slot to a peer that waits.
 */

import type { ControlChannel } from '../../cm/control-channel.js';
import { type Clock, pause } from '../../core/clock.js';
import { ConnectionLimiter, type ConnectionLimits, type Origin } from '../../core/connection-limiter.js';
import { RoceError } from '../../core/errors.js';
import { NS_PER_MS, NS_PER_S } from '../../core/units.js';

const LIMITS: ConnectionLimits = { total: 128, perAddress: 32 };
/** An honest peer needs some round trips. */
const STUCK_NS = NS_PER_S;
/** Peers of addresses that have few slots ask more often. */
const ASK_AGAIN_NS = 10 * NS_PER_MS;

interface SetUp {
  readonly control: ControlChannel;
  readonly isDone: () => boolean;
  readonly sinceNs: number;
  isEnding: boolean;
}

const never = () => false;

export class SetUpSlots {
  readonly #clock: Clock;
  readonly #limiter: ConnectionLimiter<SetUp>;

  constructor(clock: Clock, limits: ConnectionLimits = LIMITS) {
    this.#clock = clock;
    const evict = ({ control }: SetUp) => control.abort();
    this.#limiter = new ConnectionLimiter<SetUp>({ quotas: [{ states: ['pending'], ...limits }], evict });
  }

  /** Set-ups that have a slot. */
  get taken(): number {
    return this.#limiter.count('pending');
  }

  /**
   * Resolves with a function that frees the slot, to be called when the memory of the peer is free. Rejects with
   * ERR_ROCE_CONNECT if the peer leaves before it has a slot. `isDone`: the peer has completed its set-up, and its slot
   * may be taken.
   */
  async take(control: ControlChannel, isDone: () => boolean = never): Promise<() => void> {
    const { remoteAddress } = control;
    while (remoteAddress !== undefined && control.isOpen) {
      if (this.#hasRoom(remoteAddress)) {
        const setUp: SetUp = { control, isDone, sinceNs: this.#clock.nowNs(), isEnding: false };
        this.#limiter.enter(setUp, 'pending', remoteAddress);
        return () => void this.#limiter.leave(setUp);
      }
      await pause(this.#clock, ASK_AGAIN_NS * (1 + this.#limiter.count('pending', remoteAddress.network)));
    }
    throw new RoceError('ERR_ROCE_CONNECT', 'the peer left before its set-up');
  }

  #hasRoom(origin: Origin): boolean {
    if (this.#limiter.exceeded('pending', origin) === undefined) return true;
    for (const setUp of [...this.#limiter.connections]) if (setUp.isDone()) this.#limiter.leave(setUp);
    const limit = this.#limiter.exceeded('pending', origin);
    if (limit === undefined) return true;
    const beforeNs = this.#clock.nowNs() - STUCK_NS;
    const isStuck = ({ sinceNs, isEnding }: SetUp) => !isEnding && sinceNs <= beforeNs;
    const stuck = this.#limiter.oldest('pending', limit === 'perAddress' ? origin : undefined, isStuck);
    if (stuck !== undefined) {
      stuck.isEnding = true;
      stuck.control.abort();
    }
    return false;
  }
}
