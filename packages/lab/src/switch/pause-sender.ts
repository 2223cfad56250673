/** Invariant: a change of state is followed by a pause frame that announces it, before any other frame of that port. */

import { MAC_BYTES, type PfcFrame, PRIORITIES } from 'rocev2/internal/packet';

/** Locally administered; the last two bytes are the port number. */
const PORT_MAC_PREFIX = [0x02, 0x53, 0x57, 0x00];

export class PauseSender {
  readonly pending: Uint8Array;
  /** Not later than the first refresh that is due; Infinity when nothing is paused. */
  nextRefreshNs: number = Number.POSITIVE_INFINITY;
  readonly #wanted: Uint8Array;
  readonly #silenced: Uint8Array;
  readonly #refreshNs: Float64Array;
  readonly #quanta: number;
  /** By port: how long a neighbour keeps to one of our pauses. */
  readonly #pauseNs: readonly number[];
  readonly #onPending: (port: number) => void;

  constructor(quanta: number, pauseNs: readonly number[], onPending: (port: number) => void) {
    const ports = pauseNs.length;
    this.pending = new Uint8Array(ports);
    this.#wanted = new Uint8Array(ports);
    this.#silenced = new Uint8Array(ports);
    this.#refreshNs = new Float64Array(ports).fill(Number.POSITIVE_INFINITY);
    this.#quanta = quanta;
    this.#pauseNs = pauseNs;
    this.#onPending = onPending;
  }

  xoff(port: number, priority: number): void {
    this.#wanted[port] |= 1 << priority;
    this.#tell(port, 1 << priority);
  }

  xon(port: number, priority: number): void {
    this.#wanted[port] &= ~(1 << priority);
    this.#tell(port, 1 << priority);
  }

  /** The watchdog has given up on this neighbour: no pause frames for the priority until {@link listen}. */
  silence(port: number, priority: number): void {
    this.#silenced[port] |= 1 << priority;
    this.pending[port] &= ~(1 << priority);
  }

  /** Ends {@link silence}: a pause that is still needed is requested again. */
  listen(port: number, priority: number): void {
    this.#silenced[port] &= ~(1 << priority);
    this.#tell(port, this.#wanted[port] & (1 << priority));
  }

  fill(port: number, frame: PfcFrame, nowNs: number): void {
    const wanted = this.#wanted[port];
    // Every frame repeats all pauses, so that one refresh time per port is enough.
    frame.enabled = this.pending[port] | (wanted & ~this.#silenced[port]);
    for (let priority = 0; priority < PRIORITIES; priority++) {
      frame.quanta[priority] = (wanted & (1 << priority)) === 0 ? 0 : this.#quanta;
    }
    this.pending[port] = 0;
    const refreshNs = wanted === 0 ? Number.POSITIVE_INFINITY : nowNs + this.#pauseNs[port] / 2;
    this.#refreshNs[port] = refreshNs;
    if (refreshNs < this.nextRefreshNs) this.nextRefreshNs = refreshNs;
  }

  refresh(nowNs: number): void {
    if (nowNs < this.nextRefreshNs) return;
    let next = Number.POSITIVE_INFINITY;
    for (let port = 0; port < this.#refreshNs.length; port++) {
      if (this.#refreshNs[port] <= nowNs) {
        this.#refreshNs[port] = Number.POSITIVE_INFINITY; // until the frame has left
        this.#tell(port, this.#wanted[port]);
      } else next = Math.min(next, this.#refreshNs[port]);
    }
    this.nextRefreshNs = next;
  }

  #tell(port: number, priorities: number): void {
    const heard = priorities & ~this.#silenced[port];
    if (heard === 0) return;
    this.pending[port] |= heard;
    this.#onPending(port);
  }
}

export function portMac(port: number): Uint8Array {
  const mac = new Uint8Array(MAC_BYTES);
  mac.set([...PORT_MAC_PREFIX, port >> 8, port & 0xff]);
  return mac;
}
