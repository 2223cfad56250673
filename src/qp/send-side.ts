/** State that requester and completer of a reliable connection share; each field has one writer. */

import type { SendQueue } from '../memory/ring/work-queue.js';
import { AckRequestPolicy } from './ack-request-policy.js';
import { Outstanding } from './outstanding.js';
import { Retransmitter } from './retransmitter.js';
import type { QueuePairParts } from './transport.js';
import { WorkRequestCompletion } from './work-request-completion.js';

export class SendSide {
  readonly sendQueue: SendQueue;
  readonly out: Outstanding;
  readonly completion: WorkRequestCompletion;
  readonly retransmitter: Retransmitter;
  readonly ackRequests = new AckRequestPolicy();

  constructor(parts: QueuePairParts) {
    this.sendQueue = parts.sendQueue;
    this.out = new Outstanding(this.sendQueue.depth);
    this.completion = new WorkRequestCompletion(parts, this.out);
    this.retransmitter = new Retransmitter(parts, this.out, this.completion, this.ackRequests);
  }

  get postedWqes(): number {
    return (this.sendQueue.producer - this.out.head) >>> 0;
  }
}
