/**
 * Grants the credit of one NIC, round-robin to all connections with demand, at the rate of the link (rccc.ts). A NIC
 * has one scheduler, because its senders share its last hop without knowing each other.
 *
 * Invariant: what was granted in a time t, plus what arrived without credit, is at most t / T + lead / T +
 * {@link CREDIT_PACKETS} packets.
 */

/** Packets granted at a time: 4 MTU, as in the consortium's htsim. */
export const CREDIT_PACKETS = 4;

export interface CreditTaker {
  /** T: link time that a packet of it is worth, ns. */
  readonly packetNs: number;
  readonly wanted: number;
  grant(packets: number): void;
}

export class CreditScheduler {
  /** Iterated in the order of joining: a connection that was served joins again at the end. */
  readonly #round = new Set<CreditTaker>();
  #nextNs = Number.NEGATIVE_INFINITY;

  /** When {@link onDue} has something to do; Infinity: no demand. */
  get dueNs(): number {
    return this.#round.size === 0 ? Number.POSITIVE_INFINITY : this.#nextNs;
  }

  /** `leadNs`: credit that may be given at once after an idle period. */
  join(taker: CreditTaker, leadNs: number, now: number): void {
    if (this.#round.size === 0) this.#nextNs = Math.max(this.#nextNs, now - leadNs);
    this.#round.add(taker);
  }

  leave(taker: CreditTaker): void {
    this.#round.delete(taker);
  }

  charge(ns: number, leadNs: number, now: number): void {
    this.#nextNs = Math.max(this.#nextNs, now - leadNs) + ns;
  }

  /** `lateNs`: the largest delay of a call that is compensated. */
  onDue(now: number, lateNs: number): void {
    for (const taker of this.#round) {
      if (this.#nextNs > now) return;
      this.#round.delete(taker);
      const packets = Math.min(CREDIT_PACKETS, taker.wanted);
      if (packets <= 0) continue;
      this.#nextNs = Math.max(this.#nextNs, now - lateNs) + packets * taker.packetNs;
      taker.grant(packets);
      if (taker.wanted > 0) this.#round.add(taker);
    }
  }
}
