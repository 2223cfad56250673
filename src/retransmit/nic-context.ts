/** State that the queue pairs of one NIC share. */

/** The NIC of a queue pair, as its recovery scheme sees it: one object for each NIC. */
export class NicContext {
  readonly #instances = new Map<new () => unknown, unknown>();

  /**
   * The NIC's only instance of the class `type`, such as a pool that all connections of the scheme use. The first call
   * makes it; it lives as long as the NIC. The class itself is the key, so that schemes cannot collide.
   */
  shared<T>(type: new () => T): T {
    let instance = this.#instances.get(type) as T | undefined;
    if (instance === undefined) {
      instance = new type();
      this.#instances.set(type, instance);
    }
    return instance;
  }
}
