/** Answers packets that switches have marked by congestion notifications (annex A17.9.3). */

import { QPS_ERR } from '../memory/ring/enums.js';
import { writeCnp } from '../packet/roce.js';
import type { TxBatch } from '../port/datagram.js';
import type { NotificationSender } from './host.js';
import { CNP_DSCP } from './path.js';
import type { QueuePairParts } from './transport.js';

type Parts = Pick<QueuePairParts, 'host' | 'attributes' | 'link' | 'congestion' | 'scheduling' | 'probe'>;

export class CongestionNotifier implements NotificationSender {
  cnpsPending = 0;
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  onMarked(now: number): void {
    const { host, congestion, scheduling } = this.#parts;
    const { notification } = congestion.control;
    if (notification.onMarked(now)) host.notifyCongestion(this);
    else if (notification.dueNs < scheduling.deadlineNs) scheduling.deadlineNs = notification.dueNs;
  }

  onDeadline(now: number): void {
    const { host, congestion } = this.#parts;
    if (congestion.control.notification.onTick(now)) host.notifyCongestion(this);
  }

  /** Nothing is pending, and no tick is awaited. */
  get isIdle(): boolean {
    return this.cnpsPending === 0 && this.#parts.congestion.control.notification.dueNs === Number.POSITIVE_INFINITY;
  }

  emitCnp(batch: TxBatch, now: number): boolean {
    const { attributes, link, probe } = this.#parts;
    const { state, destQpn } = attributes;
    if (!link.isConnected || state === QPS_ERR) return false;
    link.seal(batch, writeCnp(batch.slab, batch.payloadOffset(batch.count), destQpn), 0, CNP_DSCP);
    probe.current.nowNs = now;
    probe.current.packetSent(batch);
    return true;
  }
}
