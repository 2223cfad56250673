/**
 * One of several managers that share a store. The holder of the leader's key leads until its time to live passes
 * without renewal; each term has a fresh manager without memory of earlier terms. A manager whose lease has ended by
 * its own clock stops at once, and one with a wrong clock is stopped by the store, because each transaction compares
 * the leader's key (`leader-metadata`).
 */

import { type Clock, NS_PER_MS, pause } from 'rocev2/internal/core';
import type { Leader } from './leader.js';
import { LEADER_KEY, LeaderMetadata } from './leader-metadata.js';
import type { ManagerMethods, ManagerPlace } from './messages.js';
import type { Metadata } from './metadata.js';
import { notLeader } from './not-leader.js';

const PRESENT_PREFIX = 'manager/';

export interface CandidateParts {
  readonly store: Metadata;
  readonly clock: Clock;
  readonly address: string;
  readonly life: string;
  readonly timing: CandidateTiming;
  wallMs(): number;
  lead(metadata: LeaderMetadata): Leader;
}

export interface CandidateTiming {
  readonly leaderMs: number;
  readonly retryMs: number;
}

interface Presence {
  readonly address: string;
  readonly life: string;
  readonly campaign?: number;
  readonly sinceMs: number;
}

interface Term {
  readonly version: number;
  readonly metadata: LeaderMetadata;
  readonly leader: Leader;
  heldNs: number;
  isReady: boolean;
}

export class Candidate {
  readonly #parts: CandidateParts;
  #term: Term | undefined;
  #lastTerm = 0;
  #campaigns = 0;
  #seen: string | undefined;
  #present = 0;
  #presentNs = 0;
  readonly #sinceMs: number;
  #isStopped = false;
  #wake: () => void = () => {};
  #stopWatch: () => void = () => {};

  constructor(parts: CandidateParts) {
    this.#parts = parts;
    this.#sinceMs = parts.wallMs();
  }

  get isLeading(): boolean {
    return this.#term?.isReady === true && !this.#term.metadata.isOver;
  }

  start(): void {
    this.#stopWatch = this.#parts.store.watch(LEADER_KEY, () => this.#wake());
    void this.#run();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopWatch();
    this.#wake();
    const version = this.#term?.version;
    this.#lose();
    const remove = async (key: string, of: number) => {
      await this.#parts.store.commit({ compare: [{ key, version: of }], remove: [key] }).catch(() => {});
    };
    if (version !== undefined) await remove(LEADER_KEY, version);
    if (this.#present > 0) await remove(this.#presentKey, this.#present);
  }

  async handle<M extends keyof ManagerMethods>(
    method: M,
    request: ManagerMethods[M][0],
  ): Promise<ManagerMethods[M][1]> {
    if (!this.isLeading) throw this.#refusal();
    return this.#term!.leader.handle(method, request);
  }

  async managers(): Promise<ManagerPlace[]> {
    const { store } = this.#parts;
    const found = await store.get(LEADER_KEY);
    const leader = found && (JSON.parse(found.value) as Presence);
    const present = (await store.list(PRESENT_PREFIX)).map(({ value }) => JSON.parse(value) as Presence);
    const place = ({ address, sinceMs }: Presence, leads: boolean) => ({
      address,
      leads,
      since: new Date(sinceMs).toISOString(),
    });
    const others = present.filter(({ address }) => address !== leader?.address);
    return [...(leader === undefined ? [] : [place(leader, true)]), ...others.map((other) => place(other, false))];
  }

  get #presentKey(): string {
    return PRESENT_PREFIX + this.#parts.address;
  }

  #refusal(): Error {
    return notLeader(this.#parts.address, this.#seen);
  }

  async #run(): Promise<void> {
    const { leaderMs, retryMs } = this.#parts.timing;
    while (!this.#isStopped) {
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      try {
        await (this.#term === undefined ? this.#campaign() : this.#keep(this.#term));
        if (!this.#isStopped) await this.#registerLiveness();
      } catch {
        // The store cannot be reached: a leader finds out in time, because its lease ends by its own clock.
      }
      if (this.#term?.metadata.isOver === true) this.#lose();
      const pauseMs = this.#term === undefined ? retryMs : Math.min(retryMs, leaderMs / 4);
      await Promise.race([woken, pause(this.#parts.clock, pauseMs * NS_PER_MS)]);
    }
  }

  async #campaign(): Promise<void> {
    const { store, clock, address, life, timing } = this.#parts;
    const found = await store.get(LEADER_KEY);
    const leader = found && (JSON.parse(found.value) as Presence);
    this.#seen = leader?.address;
    const askedNs = clock.nowNs();
    if (found === undefined) {
      const presence: Presence = { address, life, campaign: ++this.#campaigns, sinceMs: this.#parts.wallMs() };
      const put = [{ key: LEADER_KEY, value: JSON.stringify(presence), ttlMs: timing.leaderMs }];
      const version = await store.commit({ compare: [{ key: LEADER_KEY, version: 0 }], put });
      if (version > 0) this.#lead(version, askedNs);
      return;
    }
    if (leader?.life !== life) return;
    // Either our campaign succeeded and the answer was lost, or it is an earlier term of this manager whose
    // transactions may still be in flight; it cannot be continued.
    if (found.version > this.#lastTerm) {
      if (await store.renew(LEADER_KEY, found.version, timing.leaderMs)) this.#lead(found.version, askedNs);
    } else await store.commit({ compare: [{ key: LEADER_KEY, version: found.version }], remove: [LEADER_KEY] });
  }

  #lead(version: number, askedNs: number): void {
    const { store, clock, timing } = this.#parts;
    if (this.#isStopped) return;
    this.#lastTerm = version;
    const metadata = new LeaderMetadata({
      store,
      clock,
      term: version,
      retryMs: timing.retryMs,
      isHeld: () => clock.nowNs() < term.heldNs,
      refusal: () => this.#refusal(),
    });
    const leader = this.#parts.lead(metadata);
    const term: Term = { version, metadata, leader, heldNs: askedNs + timing.leaderMs * NS_PER_MS, isReady: false };
    this.#term = term;
    this.#seen = this.#parts.address;
    leader.start().then(
      () => {
        term.isReady = true;
      },
      () => {
        metadata.end();
        this.#wake();
      },
    );
  }

  async #keep(term: Term): Promise<void> {
    const { store, clock, timing } = this.#parts;
    const askedNs = clock.nowNs();
    if (term.metadata.isOver) return;
    const isKept = await store.renew(LEADER_KEY, term.version, timing.leaderMs);
    if (isKept) term.heldNs = Math.max(term.heldNs, askedNs + timing.leaderMs * NS_PER_MS);
    else term.metadata.end();
  }

  #lose(): void {
    this.#term?.metadata.end();
    this.#term?.leader.stop();
    this.#term = undefined;
    this.#seen = undefined;
  }

  async #registerLiveness(): Promise<void> {
    const { store, clock, address, life, timing } = this.#parts;
    if (clock.nowNs() < this.#presentNs) return;
    const ttlMs = timing.leaderMs;
    this.#presentNs = clock.nowNs() + (ttlMs / 4) * NS_PER_MS;
    const key = this.#presentKey;
    if (this.#present > 0 && (await store.renew(key, this.#present, ttlMs))) return;
    const value = JSON.stringify({ address, life, sinceMs: this.#sinceMs } satisfies Presence);
    this.#present = await store.commit({ compare: [], put: [{ key, value, ttlMs }] });
  }
}
