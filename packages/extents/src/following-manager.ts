/**
 * Follows the leading manager among several addresses. While the known leader is silent the others are queried too, so
 * that a dead manager costs its lease and not a whole call timeout.
 */

import { RpcError } from '@rocev2/rpc';
import { type Clock, NS_PER_MS, pause } from 'rocev2/internal/core';
import type { Manager, ManagerMethods } from './messages.js';
import { isNotLeader, leaderIn } from './not-leader.js';

export interface FollowingParts {
  readonly addresses: readonly string[];
  readonly clock: Clock;
  readonly retryMs: number;
  readonly searchMs: number;
  at(address: string): Manager;
}

/** Extents are counted from 1. */
const NO_EXTENT = 0;

class Superseded extends Error {
  readonly leader: string;

  constructor(leader: string) {
    super(`the manager at ${leader} leads now`);
    this.leader = leader;
  }
}

export class FollowingManager implements Manager {
  readonly #parts: FollowingParts;
  #current: string;

  constructor(parts: FollowingParts) {
    this.#parts = parts;
    this.#current = parts.addresses[0];
  }

  get current(): string {
    return this.#current;
  }

  /**
   * Without a leader it retries within `timeoutMs`. A request whose answer was lost is repeated at another manager: all
   * are idempotent, except that a repeated deletion reports that nothing is there.
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

  /**
   * Rejects with `Superseded` if it is silent and another one leads: its later actions have no effect.
   */
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
    // An unknown leader is a known manager under another address, or an added one.
    if (leader !== undefined && leader !== address) return leader;
    return addresses[(addresses.indexOf(address) + 1) % addresses.length];
  }
}
