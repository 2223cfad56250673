/**
 * How fast a queue pair may send data: the rate control in use, the trailers that it needs, and the notifications that
 * count.
 */

import { CongestionControl } from '../dcqcn/congestion-control.js';
import { NotificationLimit } from '../dcqcn/notification-limit.js';
import { unpackRateControl } from '../dcqcn/rate-controls.js';
import { COUNTER } from '../memory/ring/counters.js';
import { EVENT_CNP_SUSPICIOUS } from '../memory/ring/enums.js';
import { WAIT_NOTHING } from '../memory/ring/telemetry-page.js';
import { INT_NONE } from '../packet/int-trailer.js';
import { ECN_ECT0, type TxBatch } from '../port/datagram.js';
import type { QueuePairOptions } from './nic-queue-pair.js';
import type { PeerLink } from './peer-link.js';
import type { ProbeSlot } from './qp-probe.js';

export class CongestionState {
  /** Nothing is sent before `control.pacer.opensNs`, except answers without data. */
  control: CongestionControl;
  dataEcn = 0;
  /** In-band telemetry that data packets ask for: the kind of their trailer, or INT_NONE. */
  dataIntKind: number = INT_NONE;
  readonly #options: QueuePairOptions;
  readonly #link: PeerLink;
  readonly #probe: ProbeSlot;
  readonly #limit = new NotificationLimit();

  constructor(options: QueuePairOptions, link: PeerLink, probe: ProbeSlot) {
    this.#options = options;
    this.#link = link;
    this.#probe = probe;
    this.control = this.#newControl();
  }

  #newControl(): CongestionControl {
    const { host, attributes } = this.#options;
    const settings = unpackRateControl(attributes.rateControl, attributes.rateParameters);
    return new CongestionControl(settings, host.pacingCatchUpNs);
  }

  /** Starts the rate control that the attributes name: earlier state is discarded. */
  restart(): void {
    this.control = this.#newControl();
  }

  /**
   * The rate control or the address vector has changed. Data carry the codepoint of the latter, else the one that the
   * former needs.
   */
  chooseEcn(): void {
    const own = this.#link.connection?.path.ecn ?? 0;
    this.dataEcn = own === 0 && this.control.rate.usesEcn ? ECN_ECT0 : own;
  }

  reset(): void {
    this.dataEcn = 0;
    this.#limit.reset();
  }

  /** The last packet of the batch is one of data. */
  dataSent(batch: TxBatch, now: number): void {
    this.#probe.current.waits(WAIT_NOTHING);
    if (this.dataEcn !== 0) this.#limit.onEctSent(now);
    this.control.pacer.onSent(batch.lengths[batch.count - 1] + this.#link.path.overheadBytes, now);
  }

  /** A CNP of the peer, or a forged one, has arrived. */
  onCnp(now: number): void {
    const { host, qpn } = this.#options;
    const { counters } = host;
    const limit = this.#limit;
    if (this.dataEcn === 0) counters[COUNTER.rp_cnp_ignored]++;
    else if (!limit.admits(now)) {
      counters[COUNTER.rp_cnp_suspicious]++;
      if (limit.onSuspicious(now)) host.raise(EVENT_CNP_SUSPICIOUS, qpn);
    } else if (this.control.onCnp(now)) {
      limit.onCut(now);
      counters[COUNTER.rp_cnp_handled]++;
    } else counters[COUNTER.rp_cnp_ignored]++;
  }
}
