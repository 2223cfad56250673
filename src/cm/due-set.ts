export interface Due {
  /** WaitDeadline in ns; Infinity: none. */
  deadlineNs: number;
}

/** Made for a few thousand members: when the earliest deadline passes, the set visits all members. */
export class DueSet<T extends Due> {
  readonly #members = new Set<T>();
  #nextDeadlineNs = Number.POSITIVE_INFINITY;

  get size(): number {
    return this.#members.size;
  }

  get nextDeadlineNs(): number {
    return this.#nextDeadlineNs;
  }

  add(member: T): void {
    this.#members.add(member);
    this.#nextDeadlineNs = Math.min(this.#nextDeadlineNs, member.deadlineNs);
  }

  delete(member: T): void {
    this.#members.delete(member);
  }

  arm(member: T, deadlineNs: number): void {
    member.deadlineNs = deadlineNs;
    this.#nextDeadlineNs = Math.min(this.#nextDeadlineNs, deadlineNs);
  }

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

  all(): T[] {
    return [...this.#members];
  }
}
