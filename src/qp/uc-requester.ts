/**
 * The sending half of an unreliable connection (IBTA vol. 1 §9.8.2): messages go out once, packet after packet, and are
 * done when their last packet has left. Nothing is acknowledged and nothing retransmitted.
 */

import {
  QPS_SQD,
  STATUS_LOC_PROT_ERR,
  STATUS_LOC_QP_OP_ERR,
  STATUS_SUCCESS,
  WR_BIND_MW,
  WR_LOCAL_INV,
  WR_REG_MR,
} from '../memory/ring/enums.js';
import { WAIT_NOTHING, WAIT_PACING } from '../memory/ring/telemetry-page.js';
import type { SendQueue } from '../memory/ring/work-queue.js';
import { psnAdd } from '../packet/psn.js';
import type { TxBatch } from '../port/datagram.js';
import { executeLocal } from './local-operations.js';
import { Segmenter, UC_DATA_OPCODES } from './segmenter.js';
import { SendCompletions } from './send-completions.js';
import type { QueuePairParts } from './transport.js';

const NO_PACKET = -1;

export class UcRequester {
  readonly #parts: QueuePairParts;
  readonly #sq: SendQueue;
  readonly #segmenter: Segmenter;
  readonly #completions: SendCompletions;
  #nextPacket = NO_PACKET;
  psn = 0;

  constructor(parts: QueuePairParts) {
    this.#parts = parts;
    this.#sq = parts.sendQueue;
    this.#segmenter = new Segmenter(parts, UC_DATA_OPCODES);
    this.#completions = new SendCompletions(parts, parts.probe);
  }

  start(psn: number): void {
    this.psn = psn;
    this.#nextPacket = NO_PACKET;
  }

  get hasUnsent(): boolean {
    return this.#sq.isPublished(this.#sq.consumer);
  }

  get postedWqes(): number {
    return (this.#sq.producer - this.#sq.consumer) >>> 0;
  }

  get isInMessage(): boolean {
    return this.#nextPacket !== NO_PACKET;
  }

  drain(): void {
    if (this.#parts.attributes.state === QPS_SQD && !this.isInMessage) this.#parts.lifecycle.sendQueueDrained();
  }

  flush(): void {
    this.#nextPacket = NO_PACKET;
    this.#completions.flush();
    this.#parts.probe.current.waits(WAIT_NOTHING);
  }

  discard(): void {
    this.#nextPacket = NO_PACKET;
    this.psn = 0;
    this.#completions.discard();
  }

  emit(batch: TxBatch, now: number): boolean {
    const { congestion } = this.#parts;
    const probe = this.#parts.probe.current;
    if (congestion.control.pacer.opensNs > now) {
      if (this.hasUnsent) probe.waits(WAIT_PACING);
      return false;
    }
    while (!this.isInMessage) {
      if (!this.hasUnsent || this.#parts.attributes.state === QPS_SQD) {
        probe.waits(WAIT_NOTHING);
        return false;
      }
      const status = this.#start(this.#sq.consumer);
      if (status !== STATUS_SUCCESS) {
        this.#fail(status);
        return false;
      }
    }
    if (!this.#segmenter.holds(this.#sq.consumer)) {
      this.#fail(STATUS_LOC_PROT_ERR); // Its region was deregistered between two packets.
      return false;
    }
    this.#emitPacket(batch, now);
    return true;
  }

  /** Returns the status it fails with, or SUCCESS. */
  #start(index: number): number {
    const segmenter = this.#segmenter;
    segmenter.read(index);
    if (segmenter.isData) {
      if (!segmenter.resolve(0)) return STATUS_LOC_PROT_ERR;
      this.#nextPacket = 0;
      return STATUS_SUCCESS;
    }
    const { opcode } = segmenter.wqe;
    if (opcode !== WR_LOCAL_INV && opcode !== WR_BIND_MW && opcode !== WR_REG_MR) return STATUS_LOC_QP_OP_ERR;
    const status = executeLocal(this.#parts, segmenter.wqe);
    if (status !== STATUS_SUCCESS) return status;
    this.#parts.probe.current.sent(index, true, true);
    this.#completions.complete(index, STATUS_SUCCESS);
    return STATUS_SUCCESS;
  }

  #emitPacket(batch: TxBatch, now: number): void {
    const { congestion, probe } = this.#parts;
    const index = this.#sq.consumer;
    const place = this.#nextPacket;
    const isLast = place === this.#segmenter.packetCount - 1;
    this.#segmenter.write(batch, place, isLast, false, this.psn, now);
    this.psn = psnAdd(this.psn, 1);
    congestion.dataSent(batch, now);
    probe.current.sent(index, place === 0, isLast);
    if (!isLast) {
      this.#nextPacket = place + 1;
      return;
    }
    this.#nextPacket = NO_PACKET;
    this.#completions.complete(index, STATUS_SUCCESS);
    this.drain();
  }

  #fail(status: number): void {
    this.#nextPacket = NO_PACKET;
    this.#completions.stop(status);
    this.#parts.probe.current.waits(WAIT_NOTHING);
  }
}
