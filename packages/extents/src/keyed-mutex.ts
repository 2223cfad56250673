import { PromiseMutex } from 'rocev2/internal/core';

/** One mutex for each key that is in use. */
export class KeyedMutex<K> {
  readonly #mutexes = new Map<K, PromiseMutex>();

  /** Runs `work` after all earlier work for the same key. Settles as `work` does. */
  run<T>(key: K, work: () => Promise<T>): Promise<T> {
    const mutex = this.#mutexes.get(key) ?? new PromiseMutex();
    this.#mutexes.set(key, mutex);
    const done = mutex.run(work);
    void mutex.settled.then(() => {
      if (!mutex.isLocked) this.#mutexes.delete(key);
    });
    return done;
  }
}
