/**
 * The congestion control of one queue pair: its rate, window and pacing as data sender, its notifications as data
 * receiver.
 */

import { INT_NONE, IntEcho, nanosecondsSince } from '../packet/int-trailer.js';
import { NotificationPoint } from './notification-point.js';
import { type Pacer, RatePacer, UNPACED } from './pacer.js';
import { FREE_RUNNING } from './phase.js';
import type { Acknowledgement, RateControl } from './rate-control.js';
import { createRateControl, hasPacing, type RateControlSettings } from './rate-controls.js';

/** More packets than can be in flight: an echo whose count differs by more is older than the last one. */
const ECHOED_PACKETS_MAX = 1 << 24;

/** Recreated whenever `rateControl` of the queue pair is set: its state is discarded. */
export class CongestionControl {
  readonly rate: RateControl;
  readonly pacer: Pacer;
  /** Decides which marked packets are answered by a notification. */
  readonly notification: NotificationPoint;
  /** Filled again for each acknowledgement, so that none is allocated. */
  readonly #ack: Acknowledgement = {
    bytes: 0,
    rttNs: Number.NaN,
    marks: 0,
    receivedPackets: 0,
    markedPackets: 0,
    echo: undefined,
  };
  readonly #echo: IntEcho | undefined;
  #received = 0;
  #marked = 0;
  #echoedRttNs = -1;

  /** Throws ERR_ROCE_CONFLICT for parameters that contradict each other. `catchUpNs`: see {@link RatePacer}. */
  constructor(settings: RateControlSettings, catchUpNs: number) {
    this.rate = createRateControl(settings);
    this.pacer = hasPacing(settings) ? new RatePacer(this.rate, settings.burstBytes, catchUpNs) : UNPACED;
    this.#echo = this.rate.intKind === INT_NONE ? undefined : new IntEcho();
    this.notification = new NotificationPoint(settings.cnpIntervalNs, settings.cnpPhase === FREE_RUNNING);
  }

  /** Returns false if the notification changes nothing. */
  onCnp(now: number): boolean {
    this.#ack.marks++;
    return this.rate.onCnp(now);
  }

  /** Its content is reported with the next acknowledged bytes. */
  onEcho(b: Uint8Array, end: number, now: number): void {
    const echo = this.#echo;
    if (echo === undefined || !echo.read(b, end) || echo.kind !== this.rate.intKind) return;
    const received = (echo.received - this.#received) >>> 0;
    if (received > ECHOED_PACKETS_MAX) return;
    const marked = (echo.marked - this.#marked) >>> 0;
    this.#received = echo.received;
    this.#marked = echo.marked;
    this.#ack.receivedPackets += received;
    this.#ack.markedPackets += Math.min(marked, received);
    this.#ack.echo = echo;
    this.#echoedRttNs = nanosecondsSince(echo.sentNs, now);
    this.rate.onEcho(received, this.#echoedRttNs, echo, now);
  }

  /** `rttNs`: the round trip of the newest packet among them, or -1 where it was not measured. */
  onAcknowledged(bytes: number, rttNs: number, now: number): void {
    const sampleNs = this.#echo === undefined ? rttNs : this.#echoedRttNs;
    const isMeasured = sampleNs >= 0;
    if (isMeasured) this.rate.onRttSample(sampleNs, now);
    const ack = this.#ack;
    ack.bytes = bytes;
    ack.rttNs = isMeasured ? sampleNs : Number.NaN;
    this.rate.onAck(ack, now);
    ack.marks = 0;
    if (this.#echo === undefined) return;
    ack.receivedPackets = 0;
    ack.markedPackets = 0;
    ack.echo = undefined;
    this.#echoedRttNs = -1;
  }
}
