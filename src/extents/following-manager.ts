/** The manager that leads, for whoever knows the addresses of several: asks the one that answered last, and follows the lead when it moves. */

import { type Clock, pause } from '../core/clock.js';
import { NS_PER_MS } from '../core/units.js';
import { RpcError } from '../rpc/rpc-error.js';
import type { Manager, ManagerMethods } from './messages.js';
import { isNotLeader, leaderIn } from './not-leader.js';

/** What it is made of. */
export interface FollowingParts {
  /** Where managers are, `HOST:PORT`; at least one. */
  readonly addresses: readonly string[];
  /** Measures all times. */
  readonly clock: Clock;
  /** Between two rounds in which nobody led, milliseconds. */
  readonly retryMs: number;
  /** The manager at an address. */
  at(address: string): Manager;
}

/** One manager of several. */
export class FollowingManager implements Manager {
  readonly #parts: FollowingParts;
  #current: string;

  constructor(parts: FollowingParts) {
    this.#parts = parts;
    this.#current = parts.addresses[0];
  }

  /** Where it asks next. */
  get current(): string {
    return this.#current;
  }

  /**
   * As `Manager`. While nobody leads it goes on to ask as long as `timeoutMs` allows. A request whose answer was lost is repeated at another manager, because each can
   * be; only of a deletion that has happened the repetition would say that there is nothing.
   */
  async call<M extends keyof ManagerMethods>(
    method: M,
    request: ManagerMethods[M][0],
    timeoutMs: number,
  ): Promise<ManagerMethods[M][1]> {
    const { addresses, clock, retryMs } = this.#parts;
    const stopNs = clock.nowNs() + timeoutMs * NS_PER_MS;
    for (let asked = 1; ; asked++) {
      const address = this.#current;
      const leftMs = (stopNs - clock.nowNs()) / NS_PER_MS;
      try {
        return await this.#parts.at(address).call(method, request, leftMs);
      } catch (error) {
        if (error instanceof RpcError && !isNotLeader(error)) throw error;
        if (this.#current === address) this.#current = this.#after(address, leaderIn(error));
        if (!isNotLeader(error) && (method === 'deleteStream' || addresses.length === 1)) throw error;
        const pauseMs = asked % addresses.length === 0 ? retryMs : 0;
        if (clock.nowNs() + (pauseMs + 1) * NS_PER_MS >= stopNs) throw error;
        if (pauseMs > 0) await pause(clock, pauseMs * NS_PER_MS);
      }
    }
  }

  #after(address: string, leader: string | undefined): string {
    const { addresses } = this.#parts;
    // A leader that nobody has named here is one that was seen under another address, or a manager that was added.
    if (leader !== undefined && leader !== address) return leader;
    return addresses[(addresses.indexOf(address) + 1) % addresses.length];
  }
}
