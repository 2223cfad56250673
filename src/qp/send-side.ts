/** What requester and completer of a reliable connection work on together; each part has one writer of its state. */

import type { SendQueue } from '../memory/ring/work-queue.js';
import { Outstanding } from './outstanding.js';
import { Retirement } from './retirement.js';
import { Retransmitter } from './retransmitter.js';
import type { QpShared } from './shared.js';

/** The parts of the sending half. */
export class SendSide {
  /** The ring of posted work requests. */
  readonly sendQueue: SendQueue;
  /** What is in flight. */
  readonly out: Outstanding;
  /** Completes it. */
  readonly retirement: Retirement;
  /** Sends it again. */
  readonly retransmitter: Retransmitter;

  constructor(qp: QpShared, sendQueue: SendQueue) {
    this.sendQueue = sendQueue;
    this.out = new Outstanding(sendQueue.depth);
    this.retirement = new Retirement(qp, sendQueue, this.out);
    this.retransmitter = new Retransmitter(qp, this.out, this.retirement);
  }

  /** Work requests posted and not complete. */
  get postedWqes(): number {
    return (this.sendQueue.producer - this.out.head) >>> 0;
  }
}
