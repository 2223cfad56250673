/**
 * The NIC of a simulated host: queue pairs can be created and destroyed during the run, and all others behave as if
 * these had been connected from its beginning to its end. Their numbers and their shares of the sockets of peers are
 * reserved before the run, in the order in which they would have been created; a queue pair that is being connected is
 * not scheduled, because it has nothing to send; and one that is destroyed leaves its share reserved and its timer
 * running.
 */

import type { QpAttributes } from 'rocev2/internal/memory';
import { type AddressFields, Nic } from 'rocev2/internal/nic';
import {
  type ConnectedPeer,
  ConnectedQueuePair,
  initialAttributes,
  type NicQueuePair,
  type SendArbiter,
  type Timed,
} from 'rocev2/internal/qp';

const NEVER = Number.POSITIVE_INFINITY;

/**
 * The peer of a queue pair that will be connected, and how many packets its socket holds, as the connection exchange
 * will announce.
 */
type ReservedPeer = AddressFields & Pick<QpAttributes, 'inflightPackets'>;

/** A NIC whose queue pairs come and go without an effect on others. */
export class ReservingNic extends Nic {
  readonly #reservedQpns = new Set<number>();
  /** Shares of sockets that are reserved: counted as members of their pools, and used by no queue pair. */
  readonly #reservedShares = new Map<SendArbiter, number>();
  /** The number of the queue pair that is being connected. */
  #connectingQpn: number | undefined;
  #keepsShares = false;

  /** From now on it counts as one that sends there. */
  reserve(peer: ReservedPeer): number {
    const connection = super.connect(0, { ...initialAttributes(), ...peer });
    this.#addShares(connection.inFlightLimit.arbiter, 1);
    super.disconnect(connection);
    const qpn = this.newQpn();
    this.#reservedQpns.add(qpn);
    return qpn;
  }

  /** Creates and connects one queue pair, which has the reserved number `qpn`. No virtual time may pass. */
  async connecting<T>(qpn: number, create: () => Promise<T>): Promise<T> {
    this.#connectingQpn = qpn;
    try {
      return await create();
    } finally {
      this.#connectingQpn = undefined;
    }
  }

  /**
   * Destroys the queue pair `qpn`, which {@link connecting} has created and which is idle. No virtual time may pass.
   */
  async freeing(qpn: number, close: () => Promise<void>): Promise<void> {
    const qp = this.queuePairs.get(qpn);
    if (qp !== undefined) this.armDeadline(new SpentTimer(qp));
    this.#keepsShares = true;
    try {
      await close();
    } finally {
      this.#keepsShares = false;
    }
  }

  /**
   * The reliable connection `qpn` sends nothing unless it is given work or a packet arrives: all is acknowledged,
   * nothing waits to be sent.
   */
  isIdle(qpn: number): boolean {
    const qp = this.queuePairs.get(qpn);
    // A timer may still run; with everything acknowledged it does nothing.
    return qp instanceof ConnectedQueuePair && qp.isIdle;
  }

  override schedule(qp: NicQueuePair): void {
    if (this.#connectingQpn === undefined) super.schedule(qp);
  }

  override connect(qpn: number, attributes: QpAttributes): ConnectedPeer {
    const connection = super.connect(qpn, attributes);
    const { arbiter } = connection.inFlightLimit;
    if ((this.#reservedShares.get(arbiter) ?? 0) > 0) this.#addShares(arbiter, -1);
    return connection;
  }

  override disconnect(connection: ConnectedPeer): void {
    if (this.#keepsShares && connection.isSharing) this.#addShares(connection.inFlightLimit.arbiter, 1);
    super.disconnect(connection);
  }

  protected override newQpn(): number {
    if (this.#connectingQpn !== undefined) return this.#connectingQpn;
    for (;;) {
      const qpn = super.newQpn();
      if (!this.#reservedQpns.has(qpn)) return qpn;
    }
  }

  #addShares(arbiter: SendArbiter, count: number): void {
    this.#reservedShares.set(arbiter, (this.#reservedShares.get(arbiter) ?? 0) + count);
    arbiter.flows.count += count;
    arbiter.members += count;
  }
}

/**
 * The timer of a destroyed queue pair: it runs out when that of the queue pair would have, so that the NIC wakes up at
 * the same times, and does nothing.
 */
class SpentTimer implements Timed {
  deadlineNs: number;

  constructor({ deadlineNs }: Timed) {
    this.deadlineNs = deadlineNs;
  }

  onDeadline(): void {
    this.deadlineNs = NEVER;
  }
}
