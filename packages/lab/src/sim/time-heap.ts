/**
 * Actions by time: a 4-ary heap in flat arrays, ordered by (time, key). Nothing is allocated once it is large enough,
 * as long as callers add functions that they keep.
 *
 * The action that was taken leaves a hole at the top. Most actions add another, which falls from the hole to its
 * position: one way through the heap for both.
 */

const CHILDREN_BITS = 2;
const CHILDREN = 1 << CHILDREN_BITS;
const CAPACITY = 64;
const NOTHING = (): void => {};

/** No two actions may have the same time and key. */
export class TimeHeap {
  /** By position in the heap. */
  #times = new Float64Array(CAPACITY);
  #keys = new Float64Array(CAPACITY);
  /** By position in the heap: the slot of its action. Beyond the heap: the free slots. */
  #slots = Int32Array.from({ length: CAPACITY }, (_, slot) => slot);
  /** By slot: so that what moves in the heap is numbers. */
  readonly #actions: Array<() => void> = new Array<() => void>(CAPACITY).fill(NOTHING);
  /** Positions in use, the hole included. */
  #size = 0;
  /** The action at the top has been taken, and nothing has been put there yet. */
  #hasHole = false;

  /** No action is left, not even one at time Infinity. */
  get isEmpty(): boolean {
    return this.#size === (this.#hasHole ? 1 : 0);
  }

  /** Time of the first action; Infinity when there is none. */
  get nextNs(): number {
    if (this.#hasHole) this.#fillHole();
    return this.#size === 0 ? Number.POSITIVE_INFINITY : this.#times[0];
  }

  /** Key of the first action. Only where {@link nextNs} has just been asked for and the heap is not empty. */
  get firstKey(): number {
    return this.#keys[0];
  }

  /** `key` orders the actions of one time, the smallest first. */
  add(timeNs: number, key: number, action: () => void): void {
    if (this.#hasHole) {
      this.#hasHole = false;
      const slot = this.#slots[0];
      this.#actions[slot] = action;
      this.#fall(timeNs, key, slot);
      return;
    }
    if (this.#size === this.#times.length) this.#grow();
    const times = this.#times;
    const keys = this.#keys;
    const slots = this.#slots;
    let hole = this.#size++;
    const slot = slots[hole];
    this.#actions[slot] = action;
    while (hole > 0) {
      const parent = (hole - 1) >> CHILDREN_BITS;
      const parentTime = times[parent];
      if (parentTime < timeNs || (parentTime === timeNs && keys[parent] < key)) break;
      times[hole] = parentTime;
      keys[hole] = keys[parent];
      slots[hole] = slots[parent];
      hole = parent;
    }
    times[hole] = timeNs;
    keys[hole] = key;
    slots[hole] = slot;
  }

  /**
   * Removes and returns the first action. Only where {@link nextNs} has just been asked for and the heap is not empty.
   */
  take(): () => void {
    const slot = this.#slots[0];
    const action = this.#actions[slot];
    this.#actions[slot] = NOTHING; // It must not be kept alive.
    this.#hasHole = true;
    return action;
  }

  /** The last element moves to the hole at the top. */
  #fillHole(): void {
    this.#hasHole = false;
    const last = --this.#size;
    const slots = this.#slots;
    const slot = slots[last];
    slots[last] = slots[0];
    if (last > 0) this.#fall(this.#times[last], this.#keys[last], slot);
  }

  #fall(time: number, key: number, slot: number): void {
    const size = this.#size;
    const times = this.#times;
    const keys = this.#keys;
    const slots = this.#slots;
    let hole = 0;
    for (let first = 1; first < size; first = (hole << CHILDREN_BITS) + 1) {
      const end = Math.min(first + CHILDREN, size);
      let least = first;
      let leastTime = times[first];
      for (let child = first + 1; child < end; child++) {
        const childTime = times[child];
        if (childTime > leastTime) continue;
        if (childTime === leastTime && keys[child] > keys[least]) continue;
        least = child;
        leastTime = childTime;
      }
      if (leastTime > time || (leastTime === time && keys[least] > key)) break;
      times[hole] = leastTime;
      keys[hole] = keys[least];
      slots[hole] = slots[least];
      hole = least;
    }
    times[hole] = time;
    keys[hole] = key;
    slots[hole] = slot;
  }

  #grow(): void {
    const capacity = this.#times.length * 2;
    const times = new Float64Array(capacity);
    times.set(this.#times);
    this.#times = times;
    const keys = new Float64Array(capacity);
    keys.set(this.#keys);
    this.#keys = keys;
    const slots = Int32Array.from({ length: capacity }, (_, slot) => slot);
    slots.set(this.#slots);
    this.#slots = slots;
  }
}
