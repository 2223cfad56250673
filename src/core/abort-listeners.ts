/** One listener per signal for all waiting calls: Node warns of a leak from eleven listeners on. */

class AbortListeners {
  readonly #signal: AbortSignal;
  readonly #callbacks = new Set<() => void>();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  readonly #onAbort = () => {
    for (const callback of this.#callbacks) callback();
  };

  add(callback: () => void): void {
    this.#callbacks.add(callback);
  }

  remove(callback: () => void): void {
    if (!this.#callbacks.delete(callback) || this.#callbacks.size > 0) return;
    this.#signal.removeEventListener('abort', this.#onAbort);
    LISTENERS.delete(this.#signal);
  }
}

const LISTENERS = new WeakMap<AbortSignal, AbortListeners>();

export function whenAborted(signal: AbortSignal, onAbort: () => void): () => void {
  const listeners = LISTENERS.get(signal) ?? new AbortListeners(signal);
  LISTENERS.set(signal, listeners);
  listeners.add(onAbort);
  return () => listeners.remove(onAbort);
}
