/**
 * Who goes next at a server with many clients. Requests take a place and memory from one budget, and go in the order of deficit round robin
 * (Shreedhar and Varghese, SIGCOMM 1995): each client in turn, and as many bytes as the others, whatever it asks for.
 *
 * Memory has two parts. Each client has a small share of its own, so that one that holds nothing never waits for those that fetch nothing. Beyond
 * it all draw from one pool. A client that keeps memory of the pool and does not get on is reported while others wait for it. The sum is at most
 * `bytesMax` and a share for each client.
 */

import type { Clock } from '../../core/clock.js';
import { RoceError } from '../../core/errors.js';
import type { RateLimit } from './rate-limit.js';

/** The budget. */
export interface FairQueueOptions {
  /** For rate limits and for clients that do not get on. */
  readonly clock: Clock;
  /** Requests that have a place at a time. Default: any number. */
  readonly requestsMax?: number;
  /** Bytes of the pool. A request that is longer goes when the pool is unused. */
  readonly bytesMax: number;
  /** Bytes that each client may hold beside the pool. Default 0. */
  readonly shareBytes?: number;
  /** How long a client may be stuck, and others that are not may wait for the pool, before it is reported. Default 10 s. */
  readonly stuckNs?: number;
}

/** What the queue asks of a client. */
export interface FairClientEvents {
  /** Since when the peer has owed bytes and moved none: of a reply that it does not fetch, or a request that it does not finish. Infinity: it owes none. */
  stuckSinceNs(): number;
  /** The client has been stuck for too long while others wait for what it holds. It should go. */
  onStuck(): void;
}

/** Bytes a client may take in one turn. */
const QUANTUM_BYTES = 256 << 10;
/** A short request has a cost, too. */
const COST_BYTES_MIN = 4096;
const STUCK_NS = 10e9;
const NEVER_STUCK: FairClientEvents = { stuckSinceNs: () => Number.POSITIVE_INFINITY, onStuck: () => {} };

interface Ask {
  readonly bytes: number;
  readonly granted: () => void;
  /** It left before. */
  readonly refused?: () => void;
  readonly limit: RateLimit | undefined;
}

interface Account {
  readonly events: FairClientEvents;
  /** In the order of asking. */
  readonly asks: Ask[];
  heldBytes: number;
  /** Bytes it may still take in this turn. */
  deficit: number;
  hasTurn: boolean;
  /** Since when its request has waited for the pool; Infinity: it does not. */
  poolWaitsSinceNs: number;
  hasLeft: boolean;
}

/** One client's access to the budget. */
export class FairClient {
  readonly #queue: FairQueue;
  readonly #account: Account;

  /** @internal */
  constructor(queue: FairQueue, account: Account) {
    this.#queue = queue;
    this.#account = account;
  }

  /** Bytes granted and not given back. */
  get heldBytes(): number {
    return this.#account.heldBytes;
  }

  /** Calls `granted`, at once or later, when a place and memory have been taken for a request, and the limit of its disk lets it go. */
  ask(bytes: number, granted: () => void, limit?: RateLimit): void {
    this.#queue.ask(this.#account, { bytes, granted, limit });
  }

  /** The same as a promise; rejects with ERR_ROCE_CLOSED when the client leaves before. Undefined: it has been granted at once, as nearly always. */
  take(bytes: number, limit?: RateLimit): Promise<void> | undefined {
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
    if (refusal !== undefined) return Promise.reject(refusal); // Who was granted something meanwhile has ended this client.
    return new Promise((go, stop) => {
      resolve = go;
      reject = stop;
    });
  }

  /** Gives a place back. */
  done(): void {
    this.#queue.done();
  }

  /** Gives memory back. */
  give(bytes: number): void {
    this.#queue.give(this.#account, bytes);
  }

  /** Takes back what it has asked for and not been granted. What it holds it still gives back. Safe to call twice. */
  leave(): void {
    this.#queue.leave(this.#account);
  }
}

/** The budget of one server. */
export class FairQueue {
  readonly #clock: Clock;
  readonly #bytesMax: number;
  readonly #shareBytes: number;
  readonly #stuckNs: number;
  readonly #accounts = new Set<Account>();
  /** Those that wait, in the order of their turns. */
  #waiting: Account[] = [];
  /** The one that is told of a grant right now, and may ask again within its turn. */
  #granting: Account | undefined;
  #isServing = false;
  #places: number;
  #heldBytes = 0;
  #poolBytes = 0;
  /** It had its turn, holds nothing of the pool and found it too full: what comes back is kept for it. */
  #firstForPool: Account | undefined;
  /** When the next of the rate limits lets something go. */
  #limitNs = Number.POSITIVE_INFINITY;
  #cancelWake: (() => void) | undefined;
  #cancelLook: (() => void) | undefined;

  constructor(options: FairQueueOptions) {
    const { clock, requestsMax = Number.POSITIVE_INFINITY, bytesMax, shareBytes = 0, stuckNs = STUCK_NS } = options;
    this.#clock = clock;
    this.#places = requestsMax;
    this.#bytesMax = bytesMax;
    this.#shareBytes = shareBytes;
    this.#stuckNs = stuckNs;
  }

  /** Bytes that clients hold now. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Clients that wait for their turn now. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Opens an account. It ends when the client has left and has given everything back. */
  join(events: FairClientEvents = NEVER_STUCK): FairClient {
    const account: Account = {
      events,
      asks: [],
      heldBytes: 0,
      deficit: 0,
      hasTurn: false,
      poolWaitsSinceNs: Number.POSITIVE_INFINITY,
      hasLeft: false,
    };
    this.#accounts.add(account);
    return new FairClient(this, account);
  }

  /** Ends its timers. Nobody is granted anything any more. */
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
  done(): void {
    this.#places++;
    this.#serve();
  }

  /** @internal */
  give(account: Account, bytes: number): void {
    this.#hold(account, -bytes);
    if (account.hasLeft && account.heldBytes === 0) this.#accounts.delete(account);
    this.#serve();
  }

  /** @internal */
  leave(account: Account): void {
    account.hasLeft = true;
    for (const { refused } of account.asks.splice(0)) refused?.();
    if (account.heldBytes === 0) this.#accounts.delete(account);
    this.#poolIsServed(account);
    this.#waiting = this.#waiting.filter((one) => one !== account);
    this.#serve();
  }

  /** Gives turns until nobody who waits can go on. */
  #serve(): void {
    if (this.#isServing || this.#waiting.length === 0) return;
    this.#isServing = true;
    this.#limitNs = Number.POSITIVE_INFINITY;
    for (let held = 0; this.#places > 0 && held < this.#waiting.length; ) {
      const account = this.#waiting.shift()!;
      if (this.#turn(account)) held = 0;
      else held++;
    }
    this.#isServing = false;
    this.#arm();
  }

  /** False: the client has to wait for something else than its turn. */
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
    // Who asks again at once goes on with its turn.
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
    const fromPool = this.#overShare(account.heldBytes + bytes) - this.#overShare(account.heldBytes);
    if (fromPool === 0) return true;
    const mayTake = this.#firstForPool === undefined || this.#firstForPool === account;
    if (mayTake && (this.#poolBytes === 0 || this.#poolBytes + fromPool <= this.#bytesMax)) return true;
    account.poolWaitsSinceNs = Math.min(account.poolWaitsSinceNs, this.#clock.nowNs());
    if (this.#overShare(account.heldBytes) === 0) this.#firstForPool ??= account;
    this.#lookLater();
    return false;
  }

  #take(account: Account, { bytes, limit }: Ask): void {
    this.#places--;
    this.#hold(account, bytes);
    limit?.take(bytes, this.#clock.nowNs());
    this.#poolIsServed(account);
  }

  /** The account does not wait for the pool any more, if it did. */
  #poolIsServed(account: Account): void {
    account.poolWaitsSinceNs = Number.POSITIVE_INFINITY;
    if (this.#firstForPool === account) this.#firstForPool = undefined;
  }

  #hold(account: Account, bytes: number): void {
    const before = account.heldBytes;
    account.heldBytes += bytes;
    this.#heldBytes += bytes;
    this.#poolBytes += this.#overShare(account.heldBytes) - this.#overShare(before);
  }

  #overShare(bytes: number): number {
    return Math.max(0, bytes - this.#shareBytes);
  }

  /** For the next rate limit. */
  #arm(): void {
    this.#cancelWake?.();
    this.#cancelWake = undefined;
    if (this.#limitNs === Number.POSITIVE_INFINITY) return;
    this.#cancelWake = this.#clock.wakeAt(this.#limitNs, () => {
      this.#cancelWake = undefined;
      this.#serve();
    });
  }

  /** Looks for clients that are stuck for as long as somebody waits for the pool. */
  #lookLater(): void {
    this.#cancelLook ??= this.#clock.wakeAt(this.#clock.nowNs() + this.#stuckNs / 4, () => {
      this.#cancelLook = undefined;
      this.#reportStuck();
      if (this.#waiting.some(({ poolWaitsSinceNs }) => poolWaitsSinceNs !== Number.POSITIVE_INFINITY))
        this.#lookLater();
    });
  }

  /** Only if somebody waits who is not stuck: clients that have all been stopped, as on a host that is suspended, harm nobody. */
  #reportStuck(): void {
    const beforeNs = this.#clock.nowNs() - this.#stuckNs;
    const isStuck = ({ events }: Account) => events.stuckSinceNs() <= beforeNs;
    if (!this.#waiting.some((account) => account.poolWaitsSinceNs <= beforeNs && !isStuck(account))) return;
    for (const account of [...this.#accounts]) {
      if (this.#overShare(account.heldBytes) > 0 && isStuck(account)) account.events.onStuck();
    }
  }
}
