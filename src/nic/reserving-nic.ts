/**
 * The NIC of a simulated host: queue pairs can be made and freed while it works, and all others do the same as if these had been connected from the beginning to the
 * end of the run. That takes some care: their numbers and their shares of the sockets of peers are reserved before the run, in the order in which they would have been made;
 * a queue pair that is being connected takes no turn of the round-robin, since it has nothing to send; and one that is freed leaves its share reserved, and its timers running.
 */

import type { QpAttributes } from '../memory/ring/commands.js';
import { ConnectedQueuePair } from '../qp/connected-queue-pair.js';
import type { Schedulable } from '../qp/host.js';
import type { NicQueuePair } from '../qp/nic-queue-pair.js';
import type { Connection } from '../qp/path.js';
import type { TurnPool } from '../qp/sending-turns.js';
import { Deadlines } from './deadlines.js';
import { Nic, type NicOptions } from './nic.js';
import { type AddressFields, PeerPaths } from './peer-paths.js';
import { QueuePairNumbers } from './queue-pair-numbers.js';

const NEVER = Number.POSITIVE_INFINITY;

/** The peer of a queue pair that will be connected, and what its socket is said to hold. */
type ReservedPeer = AddressFields & Pick<QpAttributes, 'inflightPackets'>;

/** A NIC whose queue pairs come and go without a trace. */
export class ReservingNic extends Nic {
  readonly #numbers: ReservedNumbers;
  readonly #places: ReservedPlaces;
  readonly #deadlines: ReplaceableDeadlines;
  #isConnecting = false;

  constructor(options: NicOptions) {
    const numbers = new ReservedNumbers(options.random);
    const places = new ReservedPlaces(options.port, options.tuning.carriesPayload ?? true);
    const deadlines = new ReplaceableDeadlines();
    super({ ...options, numbers, paths: places, deadlines });
    this.#numbers = numbers;
    this.#places = places;
    this.#deadlines = deadlines;
  }

  /** The number of a queue pair that will be connected to `peer`. From now on it counts as one that sends there. */
  reserve(peer: ReservedPeer): number {
    this.#places.reserve(peer);
    return this.#numbers.reserve();
  }

  /** Makes and connects one queue pair, which has the reserved number `qpn`. No virtual time may pass. */
  async connecting<T>(qpn: number, make: () => Promise<T>): Promise<T> {
    this.#isConnecting = true;
    this.#numbers.next = qpn;
    try {
      return await make();
    } finally {
      this.#isConnecting = false;
      this.#numbers.next = undefined;
    }
  }

  /** Frees the queue pair `qpn`, which {@link connecting} has made and which is idle. No virtual time may pass. */
  async freeing(qpn: number, close: () => Promise<void>): Promise<void> {
    const qp = this.queuePairs.get(qpn);
    if (qp !== undefined) this.#deadlines.replace(qp, new SpentTimer(qp));
    this.#places.areKept = true;
    try {
      await close();
    } finally {
      this.#places.areKept = false;
    }
  }

  /** The reliable connection `qpn` sends nothing more unless it is given work or a packet arrives: all is acknowledged, no turn and no notification is due. */
  isIdle(qpn: number): boolean {
    const qp = this.queuePairs.get(qpn);
    // A timer may still run; with everything acknowledged it does nothing.
    return qp instanceof ConnectedQueuePair && qp.isIdle;
  }

  override schedule(qp: NicQueuePair): void {
    if (!this.#isConnecting) super.schedule(qp);
  }
}

/** The timer of a queue pair that is no more runs out as it would have, so that those of others begin in the same order. It does nothing. */
class SpentTimer implements Schedulable {
  readonly qpn: number;
  scheduled = false;
  deadlineNs: number;

  constructor({ qpn, deadlineNs }: Schedulable) {
    this.qpn = qpn;
    this.deadlineNs = deadlineNs;
  }

  onDeadline(): void {
    this.deadlineNs = NEVER;
  }
}

/** Timers that outlive their queue pairs. */
class ReplaceableDeadlines extends Deadlines {
  /** Puts `other` in the place of the queue pair, which is not kept in memory until its times have come. */
  replace(qp: Schedulable, other: Schedulable): void {
    const armed = this.armed.get(qp);
    this.armed.delete(qp);
    if (armed !== undefined) this.armed.set(other, armed);
    for (const entry of this.heap.data) if (entry.qp === qp) entry.qp = other;
  }
}

/** QPNs, some of which are drawn before their queue pairs are made. */
class ReservedNumbers extends QueuePairNumbers {
  /** What the next queue pair gets; undefined: any that is not reserved. */
  next: number | undefined;
  readonly #reserved = new Set<number>();

  reserve(): number {
    const qpn = super.take((number) => this.#reserved.has(number));
    this.#reserved.add(qpn);
    return qpn;
  }

  override take(isInUse: (qpn: number) => boolean): number {
    return this.next ?? super.take((qpn) => this.#reserved.has(qpn) || isInUse(qpn));
  }
}

/** Peers, and shares of their sockets that belong to queue pairs which are not there yet, or no more. */
class ReservedPlaces extends PeerPaths {
  /** A queue pair that goes leaves its place reserved. */
  areKept = false;
  readonly #free = new Map<TurnPool, number>();

  reserve(peer: ReservedPeer): void {
    this.#add(this.poolOf(this.pathTo(peer, 0), peer.inflightPackets), 1);
  }

  override connect(qpn: number, attributes: QpAttributes): Connection {
    const connection = super.connect(qpn, attributes);
    const { pool } = connection.budget;
    if ((this.#free.get(pool) ?? 0) > 0) this.#add(pool, -1);
    return connection;
  }

  override disconnect(connection: Connection): void {
    if (this.areKept && connection.isSharing) this.#add(connection.budget.pool, 1);
    super.disconnect(connection);
  }

  #add(pool: TurnPool, places: number): void {
    this.#free.set(pool, (this.#free.get(pool) ?? 0) + places);
    pool.sharers.count += places;
    pool.members += places;
  }
}
