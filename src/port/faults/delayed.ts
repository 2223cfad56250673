import TinyQueue from 'tinyqueue';

const DELAYED_MAX = 4096;

interface Entry<T> {
  readonly packet: T;
  readonly dueNs: number;
  readonly number: number;
}

export class Delayed<T> {
  readonly #queue = new TinyQueue<Entry<T>>([], (one, other) => one.dueNs - other.dueNs || one.number - other.number);
  readonly #release: (packet: T) => void;
  #count = 0;

  constructor(release: (packet: T) => void) {
    this.#release = release;
  }

  /** False, and nothing is held, when it is full: the packet is lost, as in the queue of a slow link. */
  hold(packet: T, dueNs: number): boolean {
    if (this.#queue.length === DELAYED_MAX) return false;
    this.#queue.push({ packet, dueNs, number: this.#count++ });
    return true;
  }

  get nextNs(): number {
    return this.#queue.peek()?.dueNs ?? Number.POSITIVE_INFINITY;
  }

  release(nowNs: number): void {
    while (this.nextNs <= nowNs) this.#release(this.#queue.pop()!.packet);
  }
}
