/** Which of several servers a client asks: where a disk is served by whoever owns it, as one over streams is, it moves when its owner is gone. */

/** The servers of one disk, of which one has it. */
export class Whereabouts {
  readonly #hosts: readonly string[];
  readonly #sessions: number;
  #at = 0;
  #failures = 0;

  /** `sessions`: how many sessions ask, each of which fails by itself. */
  constructor(hosts: readonly string[], sessions: number) {
    this.#hosts = hosts;
    this.#sessions = sessions;
  }

  /** The server to ask now. */
  get host(): string {
    return this.#hosts[this.#at];
  }

  /** A session has a connection, or could not have one by any transport: when that has happened to all of them, the next server is asked. */
  onReach(error: Error | undefined): void {
    this.#failures = error === undefined ? 0 : this.#failures + 1;
    if (this.#failures < this.#sessions) return;
    this.#failures = 0;
    this.#at = (this.#at + 1) % this.#hosts.length;
  }
}
