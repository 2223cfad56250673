/** The part of `EventEmitter` of Node.js that devices use. */

type Listener = (...values: unknown[]) => void;

export class EventEmitter {
  readonly #listeners = new Map<string, Listener[]>();

  on(event: string, listener: Listener): this {
    this.#listeners.set(event, [...this.#of(event), listener]);
    return this;
  }

  prependListener(event: string, listener: Listener): this {
    this.#listeners.set(event, [listener, ...this.#of(event)]);
    return this;
  }

  once(event: string, listener: Listener): this {
    return this.on(event, this.#onlyOnce(event, listener));
  }

  prependOnceListener(event: string, listener: Listener): this {
    return this.prependListener(event, this.#onlyOnce(event, listener));
  }

  off(event: string, listener: Listener): this {
    const kept = this.#of(event);
    const place = kept.findLastIndex((one) => one === listener || ORIGINALS.get(one) === listener);
    if (place >= 0) this.#listeners.set(event, kept.toSpliced(place, 1));
    return this;
  }

  removeListener(event: string, listener: Listener): this {
    return this.off(event, listener);
  }

  removeAllListeners(event?: string): this {
    if (event === undefined) this.#listeners.clear();
    else this.#listeners.delete(event);
    return this;
  }

  listenerCount(event: string): number {
    return this.#of(event).length;
  }

  emit(event: string, ...values: unknown[]): boolean {
    const listeners = this.#of(event);
    for (const listener of listeners) listener.apply(this, values);
    return listeners.length > 0;
  }

  #of(event: string): readonly Listener[] & Listener[] {
    return this.#listeners.get(event) ?? [];
  }

  #onlyOnce(event: string, listener: Listener): Listener {
    const once: Listener = (...values) => {
      this.off(event, once);
      listener.apply(this, values);
    };
    ORIGINALS.set(once, listener);
    return once;
  }
}

/** The listener that a program gave, by the function that calls it once. */
const ORIGINALS = new WeakMap<Listener, Listener>();
