/** Takes work requests from the send queue: checks each, gives it PSNs or executes it here (IBTA vol. 1 §9.7.2). */

import {
  ACCESS_LOCAL_WRITE,
  QPS_SQD,
  SEND_FENCE,
  STATUS_LOC_LEN_ERR,
  STATUS_LOC_PROT_ERR,
  STATUS_LOC_QP_OP_ERR,
  STATUS_SUCCESS,
  WR_ATOMIC_CMP_AND_SWP,
  WR_ATOMIC_FETCH_AND_ADD,
  WR_ATOMIC_WRITE,
  WR_BIND_MW,
  WR_FLUSH,
  WR_LOCAL_INV,
  WR_RDMA_READ,
  WR_REG_MR,
} from '../memory/ring/enums.js';
import { WAIT_FENCE, WAIT_NOTHING } from '../memory/ring/telemetry-page.js';
import { ATOMIC_BYTES, isFethDefined } from '../packet/roce.js';
import { executeLocal } from './local-operations.js';
import type { QueuePairOptions } from './nic-queue-pair.js';
import { KIND_ATOMIC, KIND_DATA, KIND_PLACEMENT, KIND_READ } from './outstanding.js';
import type { Segmenter } from './segmenter.js';
import type { SendSide } from './send-side.js';
import type { QueuePairParts } from './transport.js';

type Parts = QueuePairOptions & Pick<QueuePairParts, 'probe'>;

/** Most PSNs of a message: half of the range that PSN comparison distinguishes. 1 GiB at the smallest MTU. */
const MESSAGE_PSNS_MAX = 1 << 22;

export class RequestStarter {
  readonly #parts: Parts;
  readonly #side: SendSide;
  readonly #segmenter: Segmenter;

  constructor(parts: Parts, side: SendSide, segmenter: Segmenter) {
    this.#parts = parts;
    this.#side = side;
    this.#segmenter = segmenter;
  }

  /** Starts the next work request of the ring. False: there is none to start now. */
  startNext(): boolean {
    const out = this.#side.out;
    const { attributes, sendQueue } = this.#parts;
    const index = out.started;
    if (!sendQueue.isPublished(index) || attributes.state === QPS_SQD) return this.#waits(WAIT_NOTHING);
    const segmenter = this.#segmenter;
    segmenter.read(index);
    const { wqe } = segmenter;
    if ((wqe.flags & SEND_FENCE) !== 0 && out.reads.count > 0) return this.#waits(WAIT_FENCE);
    if (segmenter.isData) return this.#startMessage(KIND_DATA, 0);
    switch (wqe.opcode) {
      case WR_RDMA_READ:
        if (attributes.maxRdAtomic === 0) return this.#fail(STATUS_LOC_QP_OP_ERR);
        return this.#startMessage(KIND_READ, ACCESS_LOCAL_WRITE);
      case WR_ATOMIC_CMP_AND_SWP:
      case WR_ATOMIC_FETCH_AND_ADD:
        if (attributes.maxRdAtomic === 0) return this.#fail(STATUS_LOC_QP_OP_ERR);
        if (wqe.messageBytes !== ATOMIC_BYTES) return this.#fail(STATUS_LOC_LEN_ERR);
        return this.#startMessage(KIND_ATOMIC, ACCESS_LOCAL_WRITE);
      case WR_FLUSH:
        if (attributes.maxRdAtomic === 0 || !isFethDefined(wqe.immediate)) return this.#fail(STATUS_LOC_QP_OP_ERR);
        return this.#startMessage(KIND_PLACEMENT, 0);
      case WR_ATOMIC_WRITE:
        if (attributes.maxRdAtomic === 0) return this.#fail(STATUS_LOC_QP_OP_ERR);
        if (wqe.messageBytes !== ATOMIC_BYTES) return this.#fail(STATUS_LOC_LEN_ERR);
        return this.#startMessage(KIND_PLACEMENT, 0);
      case WR_LOCAL_INV:
        // Waits for all earlier work, which may still use the memory or key.
        return out.head === index ? this.#executeLocal() : this.#waits(WAIT_FENCE);
      case WR_BIND_MW:
      case WR_REG_MR:
        return this.#executeLocal();
      default:
        return this.#fail(STATUS_LOC_QP_OP_ERR);
    }
  }

  #startMessage(kind: number, required: number): boolean {
    const segmenter = this.#segmenter;
    if (!segmenter.resolve(required)) return this.#fail(STATUS_LOC_PROT_ERR);
    const psns = kind === KIND_DATA || kind === KIND_READ ? segmenter.packetCount : 1;
    if (psns > MESSAGE_PSNS_MAX) return this.#fail(STATUS_LOC_LEN_ERR);
    this.#side.out.start(kind, psns);
    return true;
  }

  #executeLocal(): boolean {
    const status = executeLocal(this.#parts, this.#segmenter.wqe);
    if (status !== STATUS_SUCCESS) return this.#fail(status);
    const out = this.#side.out;
    const probe = this.#parts.probe.current;
    probe.sent(out.started, true, true);
    probe.answered(out.started);
    out.startLocal();
    return true;
  }

  #fail(status: number): false {
    this.#side.completion.fail(this.#side.out.started, status);
    return false;
  }

  #waits(cause: number): false {
    this.#parts.probe.current.waits(cause);
    return false;
  }

  /** False, and the request fails, when its buffers are gone. */
  load(index: number): boolean {
    const segmenter = this.#segmenter;
    if (segmenter.holds(index)) return true;
    segmenter.read(index);
    const kind = this.#side.out.kindOf(index);
    const takesData = kind === KIND_READ || kind === KIND_ATOMIC;
    if (segmenter.resolve(takesData ? ACCESS_LOCAL_WRITE : 0)) return true;
    this.#side.completion.fail(index, STATUS_LOC_PROT_ERR);
    return false;
  }
}
