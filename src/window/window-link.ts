/**
 * How both ends of a pool protocol use a queue pair: control messages by SEND, notices by immediate data. Every
 * block in use may bring one notice, and at most two control messages are in flight, so M + 2 posted receives are never
 * exhausted and no RNR NAK is sent.
 */

import { checkKind, checkObject, checkWhole } from '../core/arguments.js';
import type { Clock } from '../core/clock.js';
import { Access } from '../verbs/access.js';
import { type CompletionQueue, completionError, type WorkCompletion } from '../verbs/completion-queue.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import type { SendWorkRequest } from '../verbs/send-work-request.js';
import { POOL_BLOCKS_MAX } from './block-memory.js';
import {
  type ControlMessage,
  decodeMessage,
  encodeMessage,
  MESSAGE_BYTES,
  type MessageType,
} from './window-messages.js';

/** A queue pair in RTS, or in INIT and about to reach it, with its own completion queues. */
export interface WindowLinkParts {
  /** Where control messages are registered. */
  readonly pd: ProtectionDomain;
  /** Queue depths at least those of {@link windowQueueDepths}. */
  readonly qp: QueuePair;
  /** Of this queue pair alone. */
  readonly sendCq: CompletionQueue;
  /** Of this queue pair alone. */
  readonly recvCq: CompletionQueue;
  /** For acknowledgements by time. */
  readonly clock: Clock;
}

const CONTROL_RECEIVES = 2;

/** Queue depths that a pool of up to `blocksMax` blocks needs, as `createQp` takes them; the CQs hold twice that. */
export function windowQueueDepths(blocksMax: number): {
  /** Work requests of the send queue. */
  maxSendWr: number;
  /** Work requests of the receive queue. */
  maxRecvWr: number;
} {
  checkBlocksMax(blocksMax);
  // A notice that a block is free may be polled before the completion of the write that used it.
  return { maxSendWr: 2 * blocksMax + 8, maxRecvWr: blocksMax + CONTROL_RECEIVES };
}

function checkBlocksMax(blocksMax: number): void {
  checkWhole('blocksMax', blocksMax, 1, POOL_BLOCKS_MAX);
}

function checkParts(parts: WindowLinkParts): void {
  checkObject('the parts of a WindowLink', parts, 'an object: pd, qp, sendCq, recvCq, clock');
  const { pd, qp, sendCq, recvCq, clock } = parts;
  checkKind('pd', pd, typeof pd?.regMr === 'function', 'a ProtectionDomain');
  checkKind('qp', qp, typeof qp?.postSend === 'function', 'a QueuePair');
  checkKind('sendCq', sendCq, typeof sendCq?.completions === 'function', 'a CompletionQueue');
  checkKind('recvCq', recvCq, typeof recvCq?.completions === 'function', 'a CompletionQueue');
  checkKind('clock', clock, typeof clock?.nowNs === 'function', 'a Clock: device.clock');
}

/** One end of a pool protocol on a queue pair. */
export class WindowLink {
  /** Where the memory of the pool is registered. */
  readonly pd: ProtectionDomain;
  /** For acknowledgements by time. */
  readonly clock: Clock;
  /** Control messages of this end. */
  readonly counters = {
    /** Posted. */
    sent: 0,
    /** Arrived, malformed ones included. */
    received: 0,
    /** Malformed or unexpected: dropped. */
    malformed: 0,
  };
  /** Takes each control message that could be read. */
  onMessage: (message: ControlMessage) => void = () => {};
  /** A block has been written: its id, and how many bytes. */
  onNotice: (id: number, bytes: number) => void = () => {};
  /** Called once, with the error that ended the connection. */
  onFailure: (error: Error) => void = () => {};
  readonly #qp: QueuePair;
  readonly #receives: MemoryRegion;
  readonly #completions: Array<() => void> = [];
  /**
   * Messages that wait for room: a block's acknowledgement may be answered by the next write to it before its own
   * completion is polled. Bounded by the protocols, which send the peer at most one message per block.
   */
  readonly #waiting: Array<{ readonly request: SendWorkRequest; readonly onDone: () => void }> = [];
  #failure: Error | undefined;
  #closed = false;

  private constructor(parts: WindowLinkParts, receives: MemoryRegion) {
    this.pd = parts.pd;
    this.clock = parts.clock;
    this.#qp = parts.qp;
    this.#receives = receives;
    void this.#serve(parts.sendCq, () => this.#onSent());
    void this.#serve(parts.recvCq, (wc) => this.#onReceive(wc));
  }

  /** Takes over a QP that can receive, and posts receives for a pool of up to `blocksMax` blocks, 1..65535. */
  static async over(parts: WindowLinkParts, blocksMax: number): Promise<WindowLink> {
    checkParts(parts);
    checkBlocksMax(blocksMax);
    const count = blocksMax + CONTROL_RECEIVES;
    const link = new WindowLink(parts, await parts.pd.regMr(count * MESSAGE_BYTES, Access.LOCAL_WRITE));
    for (let i = 0; i < count; i++) link.#postReceive(i);
    return link;
  }

  /** Work requests that fit now. */
  get room(): number {
    return this.#qp.sendRoom;
  }

  /** Posts a control message; it leaves when the send queue has room. @internal */
  send(message: { readonly type: MessageType } & Partial<ControlMessage>): void {
    this.counters.sent++;
    this.post({ opcode: 'SEND', inline: encodeMessage(message) }, () => {});
  }

  /** Posts a work request as soon as the send queue has room; `onDone` is called when it has succeeded. @internal */
  post(request: SendWorkRequest, onDone: () => void): void {
    if (this.#failure !== undefined || this.#closed) return;
    if (this.#waiting.length > 0 || this.room <= 0) {
      this.#waiting.push({ request, onDone });
      return;
    }
    this.#submit(request, onDone);
  }

  /** Stops this end: nothing more is delivered to it, and failures are no longer reported. */
  close(): void {
    this.#closed = true;
  }

  /** Fails this end with `error`, once; later calls, and calls after {@link close}, do nothing. @internal */
  fail(error: Error): void {
    if (this.#failure !== undefined || this.#closed) return;
    this.#failure = error;
    this.onFailure(error);
  }

  #onSent(): void {
    const onDone = this.#completions.shift()!;
    while (this.#waiting.length > 0 && this.room > 0) {
      const { request, onDone: onNextDone } = this.#waiting.shift()!;
      this.#submit(request, onNextDone);
    }
    onDone();
  }

  /** The queue pair may be destroyed before this end is closed, and an acknowledgement by time fall in between. */
  #submit(request: SendWorkRequest, onDone: () => void): void {
    try {
      this.#qp.postSend(request);
      this.#completions.push(onDone);
    } catch (error) {
      this.fail(error as Error);
    }
  }

  #postReceive(place: number): void {
    this.#qp.postRecv({ wrId: place, sges: [this.#receives.sge(place * MESSAGE_BYTES, MESSAGE_BYTES)] });
  }

  async #serve(cq: CompletionQueue, handle: (wc: WorkCompletion) => void): Promise<void> {
    try {
      for await (const wc of cq) {
        if (this.#closed) return;
        if (wc.status === 0) handle(wc);
        else this.fail(completionError(wc));
      }
    } catch (error) {
      this.fail(error as Error);
    }
  }

  #onReceive(wc: WorkCompletion): void {
    const place = Number(wc.wrId);
    if (wc.immediate !== undefined) {
      this.#postReceive(place);
      this.onNotice(wc.immediate, wc.byteLen);
      return;
    }
    const begin = place * MESSAGE_BYTES;
    const message = decodeMessage(this.#receives.bytes.subarray(begin, begin + wc.byteLen));
    this.#postReceive(place);
    this.counters.received++;
    if (message === undefined) this.counters.malformed++;
    else this.onMessage(message);
  }
}

/** `link`: an argument of a program. */
export function checkLink(link: WindowLink): void {
  checkKind('link', link, link instanceof WindowLink, 'a WindowLink');
}

/** `source`: an argument of a program. Throws as {@link MemoryRegion.sge} does for a range outside. */
export function checkSource(source: MemoryRegion, offset: number, length: number): void {
  checkKind('source', source, typeof source?.sge === 'function', 'a MemoryRegion');
  source.sge(offset, length);
}
