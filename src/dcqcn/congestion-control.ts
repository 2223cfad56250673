/** The congestion control of one queue pair: its rate and pacing as data sender, its notifications as data receiver. */

import { NotificationPoint } from './notification-point.js';
import { type Pacer, RatePacer, UNPACED } from './pacer.js';
import type { RateControl } from './rate-control.js';
import { createRateControl, type RateControlSettings } from './schemes.js';

export class CongestionControl {
  readonly rate: RateControl;
  readonly pacer: Pacer;
  readonly notification: NotificationPoint;

  /** Throws ERR_ROCE_CONFLICT for parameters that contradict each other. `catchUpNs`: see {@link RatePacer}. */
  constructor(settings: RateControlSettings, catchUpNs: number) {
    this.rate = createRateControl(settings);
    this.pacer = settings.name === 'none' ? UNPACED : new RatePacer(this.rate, settings.burstBytes, catchUpNs);
    this.notification = new NotificationPoint(settings.cnpIntervalNs);
  }
}
