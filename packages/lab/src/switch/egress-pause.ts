/** A frame's times overwrite those before it; a pause ends when its time is over. */

import { type PfcFrame, PRIORITIES } from 'rocev2/internal/packet';

export class EgressPause {
  /** Not later than the first end of a pause; Infinity when nothing is paused. */
  nextExpiryNs: number = Number.POSITIVE_INFINITY;
  /** By queue, port * 8 + priority: when the pause began that has lasted without a gap. */
  readonly sinceNs: Float64Array;
  /** By queue: when a frame last requested a pause. */
  readonly askedNs: Float64Array;
  readonly #untilNs: Float64Array;
  /** By port: bit p from the first pause of priority p until {@link expire} finds it over, or a time of 0 ends it. */
  readonly #mask: Uint8Array;
  readonly #ignored: Uint8Array;
  readonly #obeyed: number;

  constructor(ports: number, obeyed: number) {
    this.sinceNs = new Float64Array(ports * PRIORITIES);
    this.askedNs = new Float64Array(ports * PRIORITIES).fill(Number.NEGATIVE_INFINITY);
    this.#untilNs = new Float64Array(ports * PRIORITIES);
    this.#mask = new Uint8Array(ports);
    this.#ignored = new Uint8Array(ports);
    this.#obeyed = obeyed;
  }

  receive(port: number, frame: PfcFrame, quantumNs: number, nowNs: number): void {
    const meant = frame.enabled & this.#obeyed;
    for (let priority = 0; priority < PRIORITIES; priority++) {
      const bit = 1 << priority;
      if ((meant & bit) === 0) continue;
      const queue = port * PRIORITIES + priority;
      const quanta = frame.quanta[priority];
      if (quanta === 0) {
        this.#mask[port] &= ~bit;
        continue;
      }
      if ((this.#mask[port] & bit) === 0 || nowNs >= this.#untilNs[queue]) this.sinceNs[queue] = nowNs;
      this.askedNs[queue] = nowNs;
      this.#mask[port] |= bit;
      this.#untilNs[queue] = nowNs + quanta * quantumNs;
      if (this.#untilNs[queue] < this.nextExpiryNs) this.nextExpiryNs = this.#untilNs[queue];
    }
  }

  maskAt(port: number, nowNs: number): number {
    const mask = this.#mask[port];
    return mask === 0 ? 0 : this.#stillPaused(port, mask, nowNs) & ~this.#ignored[port];
  }

  isPaused(port: number, priority: number, nowNs: number): boolean {
    return (this.#stillPaused(port, this.#mask[port], nowNs) & (1 << priority)) !== 0;
  }

  /** While a priority is ignored its pauses are noted, not kept to. */
  ignore(port: number, priority: number, ignored: boolean): void {
    if (ignored) this.#ignored[port] |= 1 << priority;
    else this.#ignored[port] &= ~(1 << priority);
  }

  expire(nowNs: number, onEnd: (port: number) => void): void {
    if (nowNs < this.nextExpiryNs) return;
    let next = Number.POSITIVE_INFINITY;
    for (let port = 0; port < this.#mask.length; port++) {
      const before = this.#mask[port];
      if (before === 0) continue;
      const after = this.#stillPaused(port, before, nowNs);
      for (let left = after; left !== 0; left &= left - 1) {
        next = Math.min(next, this.#untilNs[port * PRIORITIES + 31 - Math.clz32(left & -left)]);
      }
      if (after === before) continue;
      this.#mask[port] = after;
      onEnd(port);
    }
    this.nextExpiryNs = next;
  }

  #stillPaused(port: number, mask: number, nowNs: number): number {
    let still = mask;
    for (let left = mask; left !== 0; left &= left - 1) {
      const bit = left & -left;
      if (nowNs >= this.#untilNs[port * PRIORITIES + 31 - Math.clz32(bit)]) still &= ~bit;
    }
    return still;
  }
}
