/** State that the queue pairs of one NIC share. */

/** The NIC of a queue pair, as its recovery scheme sees it: one object for each NIC. */
export class NicContext {
  readonly #instances = new Map<new () => unknown, unknown>();

  /**
   * The NIC's only instance of the class `type`, made by the first call and kept as long as the NIC: a pool or a count
   * that all connections of the scheme use. The class itself is the key, so that schemes cannot collide.
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
