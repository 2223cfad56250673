/** Things each of which has a time at which something is due. */

/** What may wait in a {@link DueSet}. */
export interface Due {
  /** When something is due; Infinity: nothing is. */
  deadlineNs: number;
}

/** A few thousand at most: who is due is found by looking at all of them, which happens when the earliest is. */
export class DueSet<T extends Due> {
  readonly #members = new Set<T>();
  /** Not later than the truth. */
  #nextDeadlineNs = Number.POSITIVE_INFINITY;

  /** How many wait, those for which nothing is due included. */
  get size(): number {
    return this.#members.size;
  }

  /** When something is due, or earlier; Infinity: never. */
  get nextDeadlineNs(): number {
    return this.#nextDeadlineNs;
  }

  /** A new member. */
  add(member: T): void {
    this.#members.add(member);
    this.#nextDeadlineNs = Math.min(this.#nextDeadlineNs, member.deadlineNs);
  }

  /** Harmless for one that is no member. */
  delete(member: T): void {
    this.#members.delete(member);
  }

  /** Something is due for the member at this time (ns), instead of any other. */
  arm(member: T, deadlineNs: number): void {
    member.deadlineNs = deadlineNs;
    this.#nextDeadlineNs = Math.min(this.#nextDeadlineNs, deadlineNs);
  }

  /** Those whose time has come. */
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

  /** A copy of the list, the oldest member first. */
  all(): T[] {
    return [...this.#members];
  }
}
