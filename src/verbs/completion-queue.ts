/** Completion queues: poll, wait, or iterate. */

import { checkObject, checkWhole, type OptionNames, shown } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import { PromiseMutex } from '../core/promise-mutex.js';
import { WAIT_OPTIONS, WaitDeadline, WaitList, type WaitOptions } from '../core/wait.js';
import { ARM_NEXT, ARM_SOLICITED, CompletionRing, Cqe } from '../memory/ring/completion-ring.js';
import { dumpCqe } from '../memory/ring/dump.js';
import {
  STATUS_SUCCESS,
  statusName,
  statusText,
  WC_FLAG_WITH_IMM,
  WC_FLAG_WITH_INV,
  type WcOpcodeName,
  type WcStatusName,
  wcOpcodeName,
} from '../memory/ring/enums.js';
import { RING_DEPTH_MAX } from '../memory/ring/ring.js';
import type { RdmaDevice } from './device.js';
import { completionOf, type DirectCompletion, DirectCompletions, EVENT_LOOP_TURNS } from './direct-completions.js';
import type { QueuePair } from './queue-pair.js';
import { Resource } from './resource.js';

/** The program's own mark of a work request, which its completion carries. */
export type WrId = number | bigint;

/**
 * A work completion (`ibv_wc`). When `status` is not 0 only `wrId`, `status`, `qpn` and `vendorError` mean something.
 */
export interface WorkCompletion {
  /** Of the work request; 0 where none was given. */
  readonly wrId: WrId;
  /** `ibv_wc_status`; 0 is success. */
  readonly status: number;
  /** The status as the spec names it: `SUCCESS`, `RETRY_EXC_ERR`. */
  readonly statusName: WcStatusName;
  /** `SEND`, `RDMA_READ`, `RECV`, `RECV_RDMA_WITH_IMM` ... */
  readonly opcode: WcOpcodeName;
  /** Bytes received, read, or (send side) posted. UD receives include the 40 bytes of GRH. */
  readonly byteLen: number;
  /** The queue pair whose request it was. */
  readonly qpn: number;
  /** With immediate data: the four bytes as a big-endian number. */
  readonly immediate?: number;
  /** After SEND with invalidate: the key that is no longer valid. */
  readonly invalidatedRkey?: number;
  /** UD: the sender's QPN. */
  readonly sourceQpn: number;
  /**
   * For failed requests: the AETH syndrome of the NAK; of RETRY_EXC_ERR the oldest PSN that was not acknowledged; else
   * 0.
   */
  readonly vendorError: number;
}

/** Describes a failure in one line, with the text of `ibv_wc_status_str`. */
export function describeCompletion(wc: WorkCompletion): string {
  checkObject('wc', wc, 'a WorkCompletion');
  checkWhole('qpn of wc', wc.qpn, 0, 2 ** 24 - 1);
  return `${String(wc.opcode)} wr_id ${String(wc.wrId)} on QP 0x${wc.qpn.toString(16)}: ${statusText(wc.status)} (${wc.status})`;
}

/** Throws ERR_ROCE_COMPLETION unless the work request succeeded. */
export function checkCompletion(wc: WorkCompletion): WorkCompletion {
  if (wc?.status === STATUS_SUCCESS) return wc;
  checkObject('wc', wc, 'a WorkCompletion');
  throw completionError(wc);
}

/** ERR_ROCE_COMPLETION for a work request that failed. `detail`: further information of the caller. */
export function completionError(wc: WorkCompletion, peerIsGone = false, detail?: string): RoceError {
  const gone = peerIsGone ? '; the peer process is gone' : '';
  const more = detail === undefined ? '' : `; ${detail}`;
  const hint = peerIsGone ? undefined : HINTS[wc.statusName];
  return new RoceError('ERR_ROCE_COMPLETION', describeCompletion(wc) + gone + more, hint);
}

const HINTS: { readonly [N in WcStatusName]?: string } = {
  LOC_LEN_ERR: 'a message is longer than the receive that took it',
  WR_FLUSH_ERR: 'an earlier failure stopped the queue pair; the first completion that failed says why',
  REM_INV_REQ_ERR:
    'the peer does not take this request: is its receive long enough, does its queue pair allow the operation?',
  REM_ACCESS_ERR: "the peer's memory does not allow this: key, address, length, access flags",
  RETRY_EXC_ERR: 'the peer does not answer: its program has ended or is stalled, or packets to its UDP port are lost',
  RNR_RETRY_EXC_ERR: 'the peer has no receive posted',
};

/** Called with the completions of a queue as they arrive. */
export interface CompletionServer {
  readonly batch?: number;
  /** An exception of it ends the serving. */
  onCompletion(wc: WorkCompletion): void;
  onFailure(error: Error): void;
}

/** Options of {@link CompletionQueue.wait}. */
export interface CompletionWaitOptions extends WaitOptions {
  /** Only solicited receives and errors count. Default false. */
  readonly solicitedOnly?: boolean | undefined;
}

/** Of so many completions taken, one may come from the ring while there are direct ones: of another queue pair. */
const RING_TURN = 8;

const COMPLETION_WAIT_OPTIONS: OptionNames<CompletionWaitOptions> = { ...WAIT_OPTIONS, solicitedOnly: true };

/** A completion queue (`ibv_cq`), made by {@link RdmaDevice.createCq}. */
export class CompletionQueue extends Resource {
  override readonly closeRank = 4;
  /** Unique among the objects of the device. */
  readonly kind = 'CQ';
  /** The device that it belongs to. */
  readonly device: RdmaDevice;
  /** The number that the NIC gave it. */
  readonly handle: number;
  #ring: CompletionRing;
  #memoryId: number;
  /** The ring that the NIC is to use instead. */
  #next: CompletionRing | undefined;
  readonly #resizing = new PromiseMutex();
  readonly #cqe = new Cqe();
  readonly #direct = new DirectCompletions();
  #taken = 0;
  #noticePending = false;
  readonly #waiters = new WaitList<void>();
  #failure: RoceError | undefined;
  #server: CompletionServer | undefined;
  #serves = false;

  private constructor(device: RdmaDevice, handle: number, ring: CompletionRing, memoryId: number) {
    super(device);
    this.device = device;
    this.handle = handle;
    this.#ring = ring;
    this.#memoryId = memoryId;
  }

  /** @internal */
  static async create(device: RdmaDevice, depth: number): Promise<CompletionQueue> {
    checkWhole('depth', depth, 1, RING_DEPTH_MAX);
    const ring = CompletionRing.create((bytes) => device.memoryOf(bytes), depth);
    const memoryId = device.link.attach(ring.memory);
    try {
      const { cq } = await device.command('createCq', { memory: memoryId });
      const queue = new CompletionQueue(device, cq, ring, memoryId);
      device.track(queue);
      return queue;
    } catch (error) {
      device.link.detach(memoryId);
      throw error;
    }
  }

  /** Completions the queue can hold. */
  get depth(): number {
    return this.#ring.depth;
  }

  /**
   * Changes how many completions it can hold (`ibv_resize_cq`), at least `depth`; those that were not taken stay.
   * Rejects with ERR_ROCE_LIMIT if they would not fit, ERR_ROCE_OUT_OF_RANGE for a depth that createCq does not take.
   */
  resize(depth: number): Promise<void> {
    return this.#resizing.run(() => this.#resize(depth));
  }

  async #resize(depth: number): Promise<void> {
    checkWhole('depth', depth, 1, RING_DEPTH_MAX);
    const { device } = this;
    const ring = CompletionRing.create((bytes) => device.memoryOf(bytes), depth);
    const memory = device.link.attach(ring.memory);
    this.#next = ring;
    try {
      await device.command('resizeCq', { cq: this.handle, memory });
    } catch (error) {
      device.link.detach(memory);
      throw error;
    } finally {
      this.#next = undefined;
    }
    const { consumer } = this.#ring;
    ring.copyFrom(this.#ring, consumer);
    ring.consumer = consumer;
    device.link.detach(this.#memoryId);
    this.#ring = ring;
    this.#memoryId = memory;
    this.onCompletionEvent(); // The NIC has not seen what was armed during the change.
  }

  /** At most `max` completions, oldest first; never waits. Those of closed and reset QPs are left out. */
  poll(max = 16): WorkCompletion[] {
    if (typeof max !== 'number' || !(max >= 0)) throw badCount(max);
    const completions: WorkCompletion[] = [];
    while (completions.length < max) {
      const wc = this.#take();
      if (wc === undefined) break;
      completions.push(wc);
    }
    return completions;
  }

  /** The oldest completion, or undefined. */
  pollOne(): WorkCompletion | undefined {
    return this.#take();
  }

  #take(): WorkCompletion | undefined {
    const direct = this.#direct.size > 0 && !this.#isTurnOfRing() ? this.#direct.take() : undefined;
    if (direct !== undefined) {
      direct.qp.directDone(direct, this.device.telemetryNowNs());
      return completionOf(direct);
    }
    const qp = this.#takeNext();
    return qp === undefined ? undefined : this.#completionOf(qp, this.device.telemetryNowNs());
  }

  /** A queue pair that works directly all the time must not keep completions of others waiting. */
  #isTurnOfRing(): boolean {
    this.#taken = (this.#taken + 1) % RING_TURN;
    const ring = this.#ring;
    if (this.#taken !== 0 || ring.fill === 0) return false;
    ring.readAt(ring.consumer, this.#cqe);
    return !this.#direct.holds(this.#cqe.qpn);
  }

  /** Takes the completion of a direct operation, as the NIC's ring takes others. @internal */
  pushDirect(completion: DirectCompletion): void {
    this.#direct.push(completion);
    const isAwaited = this.#waiters.size > 0 || (this.#server !== undefined && !this.#serves);
    if (isAwaited && !this.#noticePending) void this.#notice();
  }

  /** Never within the call that posts. */
  async #notice(): Promise<void> {
    this.#noticePending = true;
    await (EVENT_LOOP_TURNS.isDue ? EVENT_LOOP_TURNS.next() : undefined);
    this.#noticePending = false;
    this.onCompletionEvent();
  }

  /** Direct completions that were not taken. @internal */
  get directFill(): number {
    return this.#direct.size;
  }

  get #fill(): number {
    return this.#ring.fill + this.#direct.size;
  }

  #takeNext(): QueuePair | undefined {
    while (this.#ring.take(this.#cqe)) {
      const qp = this.device.qpOf(this.#cqe.qpn);
      if (qp !== undefined) return qp;
    }
    return undefined;
  }

  #completionOf(qp: QueuePair, nowNs: number): WorkCompletion {
    const cqe = this.#cqe;
    return toWorkCompletion(cqe, cqe.isReceive ? qp.receiveDone(cqe.index) : qp.sendDone(cqe, nowNs));
  }

  /**
   * Resolves when there is something to poll. Rejects with ERR_ROCE_CLOSED when closed, ERR_ROCE_ABORTED or
   * ERR_ROCE_TIMEOUT as the options say. When nothing more will come and everything that came has been taken, it
   * rejects with ERR_ROCE_LIMIT if the queue has overrun, ERR_ROCE_CLOSED if the NIC has ended.
   */
  async wait(options?: CompletionWaitOptions): Promise<void> {
    const deadline = WaitDeadline.of('wait', options, this.device.clock, COMPLETION_WAIT_OPTIONS);
    await this.#wait(deadline, options?.solicitedOnly === true);
  }

  async #wait(deadline: WaitDeadline | undefined, solicitedOnly: boolean): Promise<void> {
    for (;;) {
      if (EVENT_LOOP_TURNS.isDue) await EVENT_LOOP_TURNS.next();
      const ring = this.#ring;
      if (this.isClosed) throw new RoceError('ERR_ROCE_CLOSED', 'the completion queue is closed');
      // Armed first: later completions wake the waiter, earlier ones are found by the check.
      ring.arm(solicitedOnly ? ARM_SOLICITED : ARM_NEXT);
      if (solicitedOnly && this.#failure === undefined ? ring.holdsSolicited : this.#fill > 0) return;
      if (this.#failure !== undefined) throw this.#failure;
      await this.#waiters.wait(deadline, undefined);
    }
  }

  /** Waits for and returns the next completion. Rejects like {@link wait}; a call that gives up takes no completion. */
  async next(options?: WaitOptions): Promise<WorkCompletion> {
    const deadline = WaitDeadline.of('next', options, this.device.clock);
    for (;;) {
      if (EVENT_LOOP_TURNS.isDue) await EVENT_LOOP_TURNS.next();
      const wc = this.pollOne();
      if (wc !== undefined) return wc;
      await this.#wait(deadline, false);
    }
  }

  /** Callers that wait. @internal */
  get waiting(): number {
    return this.#waiters.size;
  }

  /**
   * Every completion, until the queue is closed: `for await (const wc of cq)` does the same without options. They apply
   * to the wait for each completion. Throws what {@link wait} rejects with.
   */
  completions(options?: WaitOptions): AsyncGenerator<WorkCompletion, void, undefined> {
    WaitDeadline.check('completions', options);
    return this.#completions(options);
  }

  /** The same as {@link completions} without options. */
  [Symbol.asyncIterator](): AsyncGenerator<WorkCompletion, void, undefined> {
    return this.#completions();
  }

  async *#completions(options?: WaitOptions): AsyncGenerator<WorkCompletion, void, undefined> {
    while (!this.isClosed) {
      if (EVENT_LOOP_TURNS.isDue) await EVENT_LOOP_TURNS.next();
      const wc = this.pollOne();
      if (wc !== undefined) {
        yield wc;
        continue;
      }
      try {
        await this.#wait(options && WaitDeadline.of('completions', options, this.device.clock), false);
      } catch (error) {
        if (this.isClosed) return;
        throw error;
      }
    }
  }

  /**
   * Gives every completion to `server`, from the next microtask on, instead of waiting and iterating, without a promise
   * and an iterator's step for each. After the queue is closed, no more are given. @internal
   */
  serve(server: CompletionServer): void {
    this.#server = server;
    this.#serveSoon();
  }

  #serveSoon(): void {
    if (this.#serves) return;
    this.#serves = true;
    void (EVENT_LOOP_TURNS.isDue ? EVENT_LOOP_TURNS.next() : Promise.resolve()).then(this.#serveNext);
  }

  readonly #serveNext = (): void => {
    this.#serves = false;
    const server = this.#server;
    if (server === undefined) return;
    const ring = this.#ring;
    for (let left = server.batch ?? 1; left > 0 && this.#fill > 0 && !this.isClosed; left--) {
      const wc = this.pollOne();
      if (wc === undefined) break; // They were those of closed queue pairs.
      try {
        server.onCompletion(wc);
      } catch (error) {
        this.#endServing(error as Error);
        return;
      }
    }
    if (this.isClosed) {
      this.#endServing();
      return;
    }
    if (this.#fill === 0) ring.arm(ARM_NEXT);
    // As in `#wait`: armed before the last look.
    if (this.#fill > 0) this.#serveSoon();
    else if (this.#failure !== undefined) this.#endServing(this.#failure);
  };

  #endServing(cause?: Error): void {
    const server = this.#server;
    this.#server = undefined;
    if (cause !== undefined) server?.onFailure(cause);
  }

  /**
   * A completion in hex and decoded, for debugging. `index` counts from 0 for the first one ever written; default: the
   * newest. The queue remembers its last `depth` completions.
   */
  dumpCqe(index = (this.#ring.producer - 1) >>> 0): string {
    return dumpCqe(this.#ring, index);
  }

  /** The queue pair is gone, and what it has completed is not taken any more. @internal */
  forget(qpn: number, onReceive: (cookie: number) => void): void {
    this.#ring.forget(qpn, onReceive);
    this.#next?.forget(qpn, onReceive);
    this.#direct.forget(qpn);
  }

  /** Nothing more will come: it has overrun, or the NIC is gone. The first cause counts. @internal */
  onFailure(cause: RoceError): void {
    this.#failure ??= cause;
    this.onCompletionEvent();
  }

  /** @internal */
  onCompletionEvent(): void {
    if (this.#server !== undefined && !this.#serves) this.#serveNext();
    this.#waiters.serveAll(() => {});
  }

  protected override async release(): Promise<void> {
    await this.#resizing.settled;
    await this.device.command('destroyCq', { cq: this.handle });
    this.device.link.detach(this.#memoryId);
    this.device.untrack(this);
    this.onCompletionEvent();
  }
}

function badCount(max: unknown): RoceError {
  return new RoceError('ERR_ROCE_OUT_OF_RANGE', `max is ${shown(max)}`, 'it must be a number of completions');
}

function toWorkCompletion(cqe: Cqe, wrId: WrId): WorkCompletion {
  const wc: { -readonly [K in keyof WorkCompletion]: WorkCompletion[K] } = {
    wrId,
    status: cqe.status,
    statusName: statusName(cqe.status),
    opcode: wcOpcodeName(cqe.opcode),
    byteLen: cqe.byteCount,
    qpn: cqe.qpn,
    sourceQpn: cqe.sourceQpn,
    vendorError: cqe.vendorError,
  };
  if ((cqe.flags & WC_FLAG_WITH_IMM) !== 0) wc.immediate = cqe.immediate;
  if ((cqe.flags & WC_FLAG_WITH_INV) !== 0) wc.invalidatedRkey = cqe.immediate;
  return wc;
}
