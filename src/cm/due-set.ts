/** A set of members with deadlines. */

/** A member of a {@link DueSet}. */
export interface Due {
  /** WaitDeadline in ns; Infinity: none. */
  deadlineNs: number;
}

/** Made for a few thousand members: when the earliest deadline passes, the set visits all members. */
export class DueSet<T extends Due> {
  readonly #members = new Set<T>();
  /** Lower bound of all deadlines. */
  #nextDeadlineNs = Number.POSITIVE_INFINITY;

  /** Number of members, including those without a deadline. */
  get size(): number {
    return this.#members.size;
  }

  /** The first deadline, or an earlier time; Infinity: none. */
  get nextDeadlineNs(): number {
    return this.#nextDeadlineNs;
  }

  /** Adds a member. */
  add(member: T): void {
    this.#members.add(member);
    this.#nextDeadlineNs = Math.min(this.#nextDeadlineNs, member.deadlineNs);
  }

  /** Removes a member. No effect on others. */
  delete(member: T): void {
    this.#members.delete(member);
  }

  /** Sets the deadline of a member, in ns. */
  arm(member: T, deadlineNs: number): void {
    member.deadlineNs = deadlineNs;
    this.#nextDeadlineNs = Math.min(this.#nextDeadlineNs, deadlineNs);
  }

  /** The members whose deadline has passed. */
  due(now: number): T[] {
    const due: T[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (const member of this.#members) {
      if (member.deadlineNs <= now) due.push(member);
      else next = Math.min(next, member.deadlineNs);
    }
    this.#nextDeadlineNs = next;
    return due;
  }

  /** All members, the oldest first. */
  all(): T[] {
    return [...this.#members];
  }
}
