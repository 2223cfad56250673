/** The differences between reliable and unreliable connections, and the parts that both use. */

import type { RateControl } from '../dcqcn/rate-control.js';
import type { RocePacket } from '../packet/roce.js';
import type { RxDatagram, TxBatch } from '../port/datagram.js';
import type { CongestionState } from './congestion-state.js';
import type { Lifecycle, Stoppable } from './lifecycle.js';
import type { NextPsns, QpProgress, QueuePairOptions } from './nic-queue-pair.js';
import type { PeerLink } from './peer-link.js';
import type { ProbeSlot } from './qp-probe.js';
import type { Scheduling } from './scheduling.js';
import type { TransitionTable } from './state.js';

/** The parts of a connected queue pair that are the same for both. */
export interface QueuePairParts extends QueuePairOptions {
  readonly link: PeerLink;
  readonly congestion: CongestionState;
  readonly scheduling: Scheduling;
  readonly lifecycle: Lifecycle;
  readonly probe: ProbeSlot;
}

/** The protocol between two connected queue pairs. */
export interface QueuePairTransport extends Stoppable {
  readonly transitions: TransitionTable;
  readonly entropies: number;
  startReceiving(): void;
  startSending(): void;
  /** RTS to SQD: work in progress is finished, no more is started. */
  drain(): void;
  /** Executes no more requests, until the queue pair is reset. */
  settle(): void;
  /** Answers to requests that were executed are still to be sent. */
  readonly owesAnswers: boolean;
  readonly hasBegun: boolean;
  /** There is something to send, now or later. */
  readonly hasUnsent: boolean;
  /** Back to RESET: what is posted disappears without completions. */
  discard(): void;
  /** Attributes that may change while the queue pair is connected have changed, as `mask` says. */
  attributesChanged(mask: number): void;
  /** Another rate control is in force. */
  applyRateControl(rate: RateControl): void;
  /** See {@link NicQueuePair.carries}. */
  carries(packet: RocePacket): boolean;
  /** See {@link NicQueuePair.accepts}. */
  accepts(packet: RocePacket): boolean;
  /** Takes any packet but a CNP. */
  receive(packet: RocePacket, datagram: RxDatagram, now: number): void;
  emit(batch: TxBatch, now: number): boolean;
  /** A timer may have run out. */
  onDeadline(now: number): void;
  /** When the next timer of the transport runs out. */
  readonly deadlineNs: number;
  readonly nextPsns: NextPsns;
  readonly progress: QpProgress;
}
