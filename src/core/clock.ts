/** Time as it is passed in: the system's (`driver/system-clock.ts`) or a simulation's (`sim/virtual-clock.ts`). */

/** A clock with timers. All times are nanoseconds since a moment that stays the same; time never runs backwards. */
export interface Clock {
  /** The time, in nanoseconds. */
  nowNs(): number;
  /**
   * Calls `wake` once, not before `timeNs`, never from inside this call. The result cancels the timer; it may be called
   * at any time.
   */
  wakeAt(timeNs: number, wake: () => void): () => void;
}

/**
 * Calls `wake` once, when `clock` has reached `timeNs`, never from inside this call. Timers may fire early, by another
 * clock than the one that decides: then the timer is set again. The result cancels the call.
 */
export function wakeWhenDue(clock: Clock, timeNs: number, wake: () => void): () => void {
  let cancel = () => {};
  const arm = () => {
    cancel = clock.wakeAt(timeNs, () => {
      if (clock.nowNs() < timeNs) arm();
      else wake();
    });
  };
  arm();
  return () => cancel();
}

export function pause(clock: Clock, ns: number): Promise<void> {
  return new Promise((resolve) => void clock.wakeAt(clock.nowNs() + ns, resolve));
}
