interface RefusingListener {
  readonly events: { on(type: 'REFUSED', take: (refusal: { peer: string; error: Error }) => void): unknown };
}

/** Peers that a server refused. Any host can cause refusals at any rate: the first is reported, and all are counted. */
export class RefusedPeers {
  #count = 0;
  readonly #kind: string;
  readonly #onNotice: ((notice: string) => void) | undefined;

  /** `kind`: what the server calls a peer, such as `a client`. */
  constructor(kind: string, onNotice: ((notice: string) => void) | undefined) {
    this.#kind = kind;
    this.#onNotice = onNotice;
  }

  get count(): number {
    return this.#count;
  }

  /** Without anyone to tell, the first local failure stays a warning of the process. */
  hear({ events }: RefusingListener): void {
    if (this.#onNotice !== undefined) events.on('REFUSED', ({ peer, error }) => this.add(peer, error.message));
  }

  add(peer: string, why: string): void {
    if (++this.#count > 1) return;
    this.#onNotice?.(`${this.#kind} at ${peer} was refused: ${why} (further ones are only counted)`);
  }
}
