/** How many packets a requester may have in flight: as many as peer, recovery scheme and rate control allow. */

import type { RateControl } from '../dcqcn/rate-control.js';
import type { Outstanding } from './outstanding.js';
import type { PeerLink } from './peer-link.js';
import type { Retransmitter } from './retransmitter.js';
import type { SendSide } from './send-side.js';
import type { QueuePairParts } from './transport.js';

/** The window of one reliable connection. Only while connected, except for {@link settle}. */
export class SendWindow {
  readonly #link: PeerLink;
  readonly #out: Outstanding;
  readonly #retransmitter: Retransmitter;
  readonly #wake: () => void;
  #rate: RateControl | undefined;

  constructor({ link, scheduling }: Pick<QueuePairParts, 'link' | 'scheduling'>, { out, retransmitter }: SendSide) {
    this.#link = link;
    this.#out = out;
    this.#retransmitter = retransmitter;
    this.#wake = () => scheduling.schedule();
  }

  applyRateControl(rate: RateControl): void {
    this.#rate = rate.usesWindow ? rate : undefined;
  }

  /** Packets that peer and recovery scheme allow. */
  get packetsMax(): number {
    return Math.min(this.#link.inFlightLimit.windowPackets, this.#retransmitter.recovery.inFlightMax);
  }

  /** The peer's socket is so small that an arbiter decides who sends to it. */
  get isArbitrated(): boolean {
    return this.#link.inFlightLimit.isArbitrated;
  }

  /**
   * An arbiter decides, or the last burst has a rest: {@link settle} has to follow each change of the packets in
   * flight.
   */
  get isArbitrating(): boolean {
    return this.#link.inFlightLimit.isArbitrating;
  }

  /**
   * Packets that may be in flight now, one at least, where `inFlight` are. Requests a burst where an arbiter decides;
   * `inFlight`: it has yet to begin.
   */
  open(inFlight: number, now: number): number {
    const window = this.#packetsNow(now);
    const { inFlightLimit } = this.#link;
    if (!inFlightLimit.isArbitrated || inFlight >= window) return window;
    // The last packet of a burst requests an acknowledgement, like that of a window.
    return Math.min(window, inFlight + inFlightLimit.burstPackets(this.#wake));
  }

  #packetsNow(now: number): number {
    const packets = this.packetsMax;
    if (this.#rate === undefined) return packets;
    const onTheWay = Math.max(1, Math.floor(this.#rate.windowBytes(now) / this.#link.mtuBytes));
    return Math.min(packets, onTheWay + this.#retransmitter.recovery.arrived);
  }

  /** `packets` have been sent. */
  sent(packets: number): void {
    const { inFlightLimit } = this.#link;
    if (inFlightLimit.isArbitrated) inFlightLimit.sent(packets);
  }

  /** There is nothing to send now. */
  endBurst(): void {
    this.#link.inFlightLimit.endBurst();
  }

  /** Packets were sent, acknowledged or abandoned: those in flight count against the capacity of the peer's socket. */
  settle(): void {
    if (this.#link.isConnected && this.isArbitrating) {
      this.#link.inFlightLimit.settle(this.#out.inFlight, this.#retransmitter.isSilent);
    }
  }
}
