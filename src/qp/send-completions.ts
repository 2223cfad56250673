import { Cqe } from '../memory/ring/completion-ring.js';
import { COUNTER } from '../memory/ring/counters.js';
import { QPS_SQE, SEND_SIGNALED, STATUS_SUCCESS, STATUS_WR_FLUSH_ERR, wcOpcodeOf } from '../memory/ring/enums.js';
import type { SendQueue } from '../memory/ring/work-queue.js';
import type { QueuePairOptions } from './nic-queue-pair.js';
import { ProbeSlot } from './qp-probe.js';

export class SendCompletions {
  readonly #options: QueuePairOptions;
  readonly #sq: SendQueue;
  readonly #probe: ProbeSlot;
  readonly #cqe = new Cqe();

  constructor(options: QueuePairOptions, probe = new ProbeSlot()) {
    this.#options = options;
    this.#sq = options.sendQueue;
    this.#probe = probe;
  }

  /**
   * It is freed before its completion is written: a CQ that overruns stops the QP, which flushes from the next element.
   */
  complete(index: number, status: number, vendorError = 0): void {
    const sq = this.#sq;
    const { qpn, sendCq, signalAll } = this.#options;
    sq.consumer = (index + 1) >>> 0;
    this.#probe.current.completed(index);
    if (status === STATUS_SUCCESS && !signalAll && (sq.flagsAt(index) & SEND_SIGNALED) === 0) return;
    const cqe = this.#cqe;
    cqe.index = index;
    cqe.qpn = qpn;
    cqe.status = status;
    cqe.opcode = wcOpcodeOf(sq.opcodeAt(index));
    cqe.byteCount = sq.messageBytesAt(index);
    cqe.vendorError = vendorError;
    sendCq.complete(cqe);
  }

  /** The oldest element fails with an error other than a flush. */
  completeInError(index: number, status: number, vendorError = 0): void {
    this.#options.host.counters[COUNTER.req_cqe_error]++;
    this.complete(index, status, vendorError);
  }

  /**
   * The oldest element meets a local error, which stops only the send queue: state SQE, receives continue (IBTA
   * §10.3.1.6).
   */
  stop(status: number): void {
    this.#options.attributes.state = QPS_SQE; // First: a completion that finds its queue full moves on to ERR.
    this.completeInError(this.#sq.consumer, status);
    this.flush();
  }

  flush(): void {
    const sq = this.#sq;
    for (let index = sq.consumer; sq.isPublished(index); index = sq.consumer) this.complete(index, STATUS_WR_FLUSH_ERR);
  }

  discard(): void {
    this.#sq.consumer = this.#sq.producer;
    this.#probe.current.discarded(this.#sq.producer);
  }
}
