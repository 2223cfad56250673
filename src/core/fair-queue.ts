/**
 * The order of requests at a server with many clients: deficit round robin by bytes (Shreedhar and Varghese, SIGCOMM
 * 1995). Each client has a small private memory share and beyond it draws from one pool, so a client that holds nothing
 * never waits for slow readers. A client that keeps pool memory without progress is reported while others wait. The
 * total is at most `bytesMax` plus a share for each client. Clients of one group, such as those of one address, have at
 * most `groupBytesMax` of the pool.
 */

import type { Clock } from './clock.js';
import { RoceError } from './errors.js';

/** Limits the rate of requests. */
export interface RequestPace {
  /** When the next request may start. */
  readonly readyNs: number;
  take(bytes: number, nowNs: number): void;
}

export interface FairQueueOptions {
  readonly clock: Clock;
  readonly requestsMax?: number;
  /** Bytes of the pool. A longer request starts when the pool is unused. */
  readonly bytesMax: number;
  readonly shareBytes?: number;
  /** Bytes of the pool for the clients of one group. A longer request starts when the group holds nothing. */
  readonly groupBytesMax?: number;
  readonly stuckNs?: number;
}

export interface FairClientEvents {
  /**
   * Since when the peer has not progressed with a reply that it does not fetch, or a request that it does not finish.
   * Infinity: neither.
   */
  stuckSinceNs(): number;
  onStuck(): void;
}

const QUANTUM_BYTES = 256 << 10;
const COST_BYTES_MIN = 4096;
const STUCK_NS = 10e9;
const NEVER_STUCK: FairClientEvents = { stuckSinceNs: () => Number.POSITIVE_INFINITY, onStuck: () => {} };

interface Ask {
  readonly bytes: number;
  readonly granted: () => void;
  readonly refused?: () => void;
  readonly limit: RequestPace | undefined;
}

interface Group {
  clients: number;
  poolBytes: number;
}

interface Account {
  readonly events: FairClientEvents;
  readonly group: Group | undefined;
  readonly groupName: string | undefined;
  readonly asks: Ask[];
  heldBytes: number;
  deficit: number;
  hasTurn: boolean;
  /** Since when its request has waited for the pool; Infinity: it does not. */
  poolWaitsSinceNs: number;
  /** It waits only for memory of its group. */
  waitsForGroup: boolean;
  hasLeft: boolean;
}

export class FairClient {
  readonly #queue: FairQueue;
  readonly #account: Account;

  /** @internal */
  constructor(queue: FairQueue, account: Account) {
    this.#queue = queue;
    this.#account = account;
  }

  get heldBytes(): number {
    return this.#account.heldBytes;
  }

  /**
   * Calls `granted`, at once or later, when a slot and memory are reserved for a request, and the limit of its disk
   * allows it.
   */
  ask(bytes: number, granted: () => void, limit?: RequestPace): void {
    this.#queue.ask(this.#account, { bytes, granted, limit });
  }

  /** Undefined: it has been granted at once, as nearly always. */
  take(bytes: number, limit?: RequestPace): Promise<void> | undefined {
    let isGranted = false;
    let refusal: RoceError | undefined;
    let resolve = () => {
      isGranted = true;
    };
    let reject = (error: RoceError) => {
      refusal = error;
    };
    const granted = () => resolve();
    const refused = () => reject(new RoceError('ERR_ROCE_CLOSED', 'the client has left'));
    this.#queue.ask(this.#account, { bytes, granted, refused, limit });
    if (isGranted) return undefined;
    if (refusal !== undefined) return Promise.reject(refusal);
    return new Promise((go, stop) => {
      resolve = go;
      reject = stop;
    });
  }

  /** Whether the memory of a request is free now. */
  hasRoomFor(bytes: number): boolean {
    return this.#queue.hasRoomFor(this.#account, bytes);
  }

  done(): void {
    this.#queue.done();
  }

  give(bytes: number): void {
    this.#queue.give(this.#account, bytes);
  }

  /** It still releases the memory that it holds. */
  leave(): void {
    this.#queue.leave(this.#account);
  }
}

export class FairQueue {
  readonly #clock: Clock;
  readonly #bytesMax: number;
  readonly #shareBytes: number;
  readonly #groupBytesMax: number;
  readonly #stuckNs: number;
  readonly #groups = new Map<string, Group>();
  readonly #accounts = new Set<Account>();
  #waiting: Account[] = [];
  #granting: Account | undefined;
  #isServing = false;
  #freeSlots: number;
  #heldBytes = 0;
  #poolBytes = 0;
  /** It was served, holds nothing of the pool and found it too full: released memory is reserved for it. */
  #firstForPool: Account | undefined;
  #limitNs = Number.POSITIVE_INFINITY;
  #cancelWake: (() => void) | undefined;
  #cancelLook: (() => void) | undefined;

  constructor(options: FairQueueOptions) {
    const { clock, requestsMax = Number.POSITIVE_INFINITY, bytesMax, shareBytes = 0, stuckNs = STUCK_NS } = options;
    this.#groupBytesMax = options.groupBytesMax ?? Number.POSITIVE_INFINITY;
    this.#clock = clock;
    this.#freeSlots = requestsMax;
    this.#bytesMax = bytesMax;
    this.#shareBytes = shareBytes;
    this.#stuckNs = stuckNs;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  join(events: FairClientEvents = NEVER_STUCK, groupName?: string): FairClient {
    const account: Account = {
      events,
      group: groupName === undefined ? undefined : this.#joinGroup(groupName),
      groupName,
      asks: [],
      heldBytes: 0,
      deficit: 0,
      hasTurn: false,
      poolWaitsSinceNs: Number.POSITIVE_INFINITY,
      waitsForGroup: false,
      hasLeft: false,
    };
    this.#accounts.add(account);
    return new FairClient(this, account);
  }

  #joinGroup(name: string): Group {
    const group = this.#groups.get(name) ?? { clients: 0, poolBytes: 0 };
    group.clients++;
    this.#groups.set(name, group);
    return group;
  }

  #forget(account: Account): void {
    if (!this.#accounts.delete(account) || account.group === undefined) return;
    if (--account.group.clients === 0) this.#groups.delete(account.groupName!);
  }

  close(): void {
    this.#waiting = [];
    this.#cancelWake?.();
    this.#cancelLook?.();
  }

  /** @internal */
  ask(account: Account, ask: Ask): void {
    account.asks.push(ask);
    if (account.asks.length === 1 && account !== this.#granting) this.#waiting.push(account);
    this.#serve();
  }

  /** @internal */
  hasRoomFor(account: Account, bytes: number): boolean {
    const fromPool = this.#fromPool(account, bytes);
    return fromPool === 0 || (this.#poolFits(account, fromPool) && !this.#fillsGroup(account, fromPool));
  }

  /** @internal */
  done(): void {
    this.#freeSlots++;
    this.#serve();
  }

  /** @internal */
  give(account: Account, bytes: number): void {
    this.#hold(account, -bytes);
    if (account.hasLeft && account.heldBytes === 0) this.#forget(account);
    this.#serve();
  }

  /** @internal */
  leave(account: Account): void {
    account.hasLeft = true;
    for (const { refused } of account.asks.splice(0)) refused?.();
    if (account.heldBytes === 0) this.#forget(account);
    this.#poolIsServed(account);
    this.#waiting = this.#waiting.filter((one) => one !== account);
    this.#serve();
  }

  #serve(): void {
    if (this.#isServing || this.#waiting.length === 0) return;
    this.#isServing = true;
    this.#limitNs = Number.POSITIVE_INFINITY;
    for (let held = 0; this.#freeSlots > 0 && held < this.#waiting.length; ) {
      const account = this.#waiting.shift()!;
      if (this.#turn(account)) held = 0;
      else held++;
    }
    this.#isServing = false;
    this.#arm();
  }

  #turn(account: Account): boolean {
    const [ask] = account.asks;
    if (!this.#fits(account, ask)) {
      account.hasTurn = false;
      this.#waiting.push(account);
      return false;
    }
    if (!account.hasTurn) account.deficit += QUANTUM_BYTES;
    account.hasTurn = true;
    const cost = Math.max(ask.bytes, COST_BYTES_MIN);
    if (cost > account.deficit) {
      account.hasTurn = false;
      this.#waiting.push(account);
      return true;
    }
    account.deficit -= cost;
    account.asks.shift();
    this.#take(account, ask);
    this.#granting = account;
    ask.granted();
    this.#granting = undefined;
    if (account.asks.length > 0) this.#waiting.unshift(account);
    else {
      account.hasTurn = false;
      account.deficit = 0;
    }
    return true;
  }

  #fits(account: Account, { bytes, limit }: Ask): boolean {
    if (limit !== undefined && limit.readyNs > this.#clock.nowNs()) {
      this.#limitNs = Math.min(this.#limitNs, limit.readyNs);
      return false;
    }
    const fromPool = this.#fromPool(account, bytes);
    if (fromPool === 0) return true;
    account.waitsForGroup = this.#fillsGroup(account, fromPool);
    if (this.#poolFits(account, fromPool) && !account.waitsForGroup) return true;
    account.poolWaitsSinceNs = Math.min(account.poolWaitsSinceNs, this.#clock.nowNs());
    if (account.waitsForGroup) {
      if (this.#firstForPool === account) this.#firstForPool = undefined;
    } else if (this.#overShare(account.heldBytes) === 0) this.#firstForPool ??= account;
    this.#lookLater();
    return false;
  }

  #fromPool({ heldBytes }: Account, bytes: number): number {
    return this.#overShare(heldBytes + bytes) - this.#overShare(heldBytes);
  }

  #poolFits(account: Account, fromPool: number): boolean {
    if (this.#firstForPool !== undefined && this.#firstForPool !== account) return false;
    return this.#poolBytes === 0 || this.#poolBytes + fromPool <= this.#bytesMax;
  }

  #fillsGroup({ group }: Account, fromPool: number): boolean {
    const groupBytes = group?.poolBytes ?? 0;
    return groupBytes > 0 && groupBytes + fromPool > this.#groupBytesMax;
  }

  #take(account: Account, { bytes, limit }: Ask): void {
    this.#freeSlots--;
    this.#hold(account, bytes);
    limit?.take(bytes, this.#clock.nowNs());
    this.#poolIsServed(account);
  }

  #poolIsServed(account: Account): void {
    account.poolWaitsSinceNs = Number.POSITIVE_INFINITY;
    if (this.#firstForPool === account) this.#firstForPool = undefined;
  }

  #hold(account: Account, bytes: number): void {
    const before = account.heldBytes;
    account.heldBytes += bytes;
    this.#heldBytes += bytes;
    const fromPool = this.#overShare(account.heldBytes) - this.#overShare(before);
    this.#poolBytes += fromPool;
    if (account.group !== undefined) account.group.poolBytes += fromPool;
  }

  #overShare(bytes: number): number {
    return Math.max(0, bytes - this.#shareBytes);
  }

  #arm(): void {
    this.#cancelWake?.();
    this.#cancelWake = undefined;
    if (this.#limitNs === Number.POSITIVE_INFINITY) return;
    this.#cancelWake = this.#clock.wakeAt(this.#limitNs, () => {
      this.#cancelWake = undefined;
      this.#serve();
    });
  }

  #lookLater(): void {
    this.#cancelLook ??= this.#clock.wakeAt(this.#clock.nowNs() + this.#stuckNs / 4, () => {
      this.#cancelLook = undefined;
      this.#reportStuck();
      if (this.#waiting.some(({ poolWaitsSinceNs }) => poolWaitsSinceNs !== Number.POSITIVE_INFINITY))
        this.#lookLater();
    });
  }

  /** Only if a client waits that is not stuck: if all are stopped, as on a suspended host, it is harmless. */
  #reportStuck(): void {
    const beforeNs = this.#clock.nowNs() - this.#stuckNs;
    const isStuck = ({ events }: Account) => events.stuckSinceNs() <= beforeNs;
    const waiting = this.#waiting.filter((account) => account.poolWaitsSinceNs <= beforeNs && !isStuck(account));
    const keepsOthers = ({ group }: Account) =>
      waiting.some((other) => !other.waitsForGroup || (group !== undefined && other.group === group));
    for (const account of [...this.#accounts]) {
      const holds = this.#overShare(account.heldBytes) > 0;
      if (holds && isStuck(account) && keepsOthers(account)) account.events.onStuck();
    }
  }
}
