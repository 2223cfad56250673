/** The congestion control of one queue pair: its rate, window and pacing as data sender, its notifications as data receiver. */

import { NotificationPoint } from './notification-point.js';
import { type Pacer, RatePacer, UNPACED } from './pacer.js';
import { FREE_RUNNING } from './phase.js';
import type { Acknowledgement, RateControl } from './rate-control.js';
import { createRateControl, hasPacing, type RateControlSettings } from './schemes.js';

/** Made anew whenever `rateControl` of the queue pair is set: what was learned so far is forgotten. */
export class CongestionControl {
  /** The scheme. */
  readonly rate: RateControl;
  /** Holds data packets back until their time has come. */
  readonly pacer: Pacer;
  /** Decides which marked packets are answered by a notification. */
  readonly notification: NotificationPoint;
  /** Filled anew for each acknowledgement, so that none is allocated. */
  readonly #ack: Acknowledgement = { bytes: 0, rttNs: Number.NaN, marks: 0 };

  /** Throws ERR_ROCE_CONFLICT for parameters that contradict each other. `catchUpNs`: see {@link RatePacer}. */
  constructor(settings: RateControlSettings, catchUpNs: number) {
    this.rate = createRateControl(settings);
    this.pacer = hasPacing(settings) ? new RatePacer(this.rate, settings.burstBytes, catchUpNs) : UNPACED;
    this.notification = new NotificationPoint(settings.cnpIntervalNs, settings.cnpPhase === FREE_RUNNING);
  }

  /** The peer notifies of congestion. False when that changes nothing. */
  onCnp(now: number): boolean {
    this.#ack.marks++;
    return this.rate.onCnp(now);
  }

  /** `bytes` more are acknowledged. `rttNs`: the round trip of the newest packet among them, or -1 where it was not measured. */
  onAcknowledged(bytes: number, rttNs: number, now: number): void {
    const isMeasured = rttNs >= 0;
    if (isMeasured) this.rate.onRttSample(rttNs, now);
    this.#ack.bytes = bytes;
    this.#ack.rttNs = isMeasured ? rttNs : Number.NaN;
    this.rate.onAck(this.#ack, now);
    this.#ack.marks = 0;
  }
}
