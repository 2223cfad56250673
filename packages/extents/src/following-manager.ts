/**
 * The manager that leads, for whoever knows the addresses of several: asks the one that answered last, and follows the lead when it moves. While that one is silent, the
 * others are asked whether one of them leads by now: a manager that has stopped, or is cut off, then costs its lease, and not the whole time of a call.
 */

import { RpcError } from '@rocev2/rpc';
import { type Clock, NS_PER_MS, pause } from 'rocev2/internal/core';
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
  /** A manager without an answer for so long has the others asked whether one of them leads, milliseconds, and again after as long. */
  readonly searchMs: number;
  /** The manager at an address. */
  at(address: string): Manager;
}

/** Extents are counted from 1. */
const NO_EXTENT = 0;

/** A manager that was asked has not answered, and another one leads. */
class Superseded extends Error {
  readonly leader: string;

  constructor(leader: string) {
    super(`the manager at ${leader} leads now`);
    this.leader = leader;
  }
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
        const answer = this.#parts.at(address).call(method, request, leftMs);
        // A deletion that has happened must not be repeated.
        return await (method === 'deleteStream' ? answer : this.#unlessAnotherLeads(address, answer, stopNs));
      } catch (error) {
        if (error instanceof RpcError && !isNotLeader(error)) throw error;
        if (error instanceof Superseded) {
          this.#current = error.leader;
          continue;
        }
        if (this.#current === address) this.#current = this.#after(address, leaderIn(error));
        if (!isNotLeader(error) && (method === 'deleteStream' || addresses.length === 1)) throw error;
        const pauseMs = asked % addresses.length === 0 ? retryMs : 0;
        if (clock.nowNs() + (pauseMs + 1) * NS_PER_MS >= stopNs) throw error;
        if (pauseMs > 0) await pause(clock, pauseMs * NS_PER_MS);
      }
    }
  }

  /** The answer of a manager. Rejects with `Superseded` if it is silent and another one leads: whatever it does then changes nothing any more. */
  async #unlessAnotherLeads<T>(address: string, answer: Promise<T>, stopNs: number): Promise<T> {
    const { clock, searchMs } = this.#parts;
    const others = this.#parts.addresses.filter((one) => one !== address);
    if (others.length === 0) return answer;
    let isAnswered = false;
    const mark = () => {
      isAnswered = true;
    };
    answer.then(mark, mark);
    let stopPause = () => {};
    const search = async (): Promise<never> => {
      while (!isAnswered) {
        await new Promise<void>((resolve) => {
          stopPause = clock.wakeAt(clock.nowNs() + searchMs * NS_PER_MS, resolve);
        });
        const leftMs = (stopNs - clock.nowNs()) / NS_PER_MS;
        if (leftMs <= 1) break;
        const leader = await this.#leading(others, Math.min(searchMs, leftMs));
        if (leader !== undefined) throw new Superseded(leader);
      }
      return new Promise<never>(() => {});
    };
    try {
      return await Promise.race([answer, search()]);
    } finally {
      stopPause();
    }
  }

  /** Which of them leads: the others refuse every question. */
  async #leading(addresses: readonly string[], timeoutMs: number): Promise<string | undefined> {
    const ask = async (address: string): Promise<string> => {
      try {
        await this.#parts.at(address).call('locateExtent', { extent: NO_EXTENT }, timeoutMs);
      } catch (error) {
        if (!(error instanceof RpcError) || isNotLeader(error)) throw error;
      }
      return address;
    };
    return Promise.any(addresses.map(ask)).catch(() => undefined);
  }

  #after(address: string, leader: string | undefined): string {
    const { addresses } = this.#parts;
    // A leader that nobody has named here is one that was seen under another address, or a manager that was added.
    if (leader !== undefined && leader !== address) return leader;
    return addresses[(addresses.indexOf(address) + 1) % addresses.length];
  }
}
