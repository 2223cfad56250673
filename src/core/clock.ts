/** Time as it is passed in: the system's (`driver/system-clock.ts`) or a simulation's (`sim/virtual-clock.ts`). */

/** A clock with timers. All times are nanoseconds since a moment that stays the same; time never runs backwards. */
export interface Clock {
  /** The time, in nanoseconds. */
  nowNs(): number;
  /**
   * Calls `wake` once, not before `timeNs`, never from inside this call. The result takes that back; it may be called
   * at any time.
   */
  wakeAt(timeNs: number, wake: () => void): () => void;
}

export function pause(clock: Clock, ns: number): Promise<void> {
  return new Promise((resolve) => void clock.wakeAt(clock.nowNs() + ns, resolve));
}
