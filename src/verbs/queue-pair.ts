import { checkKind, checkOneOf, checkOptions, checkWhole, type OptionNames } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import type { Cqe } from '../memory/ring/completion-ring.js';
import { dumpWqe } from '../memory/ring/dump.js';
import {
  QP_STATE_NAMES,
  QP_TYPES,
  QPS_ERR,
  QPS_INIT,
  QPS_RESET,
  QPS_RTS,
  type QpStateName,
  type QpTypeName,
  SEND_FENCE,
  SEND_SIGNALED,
  SEND_SOLICITED,
  WR_OPCODES,
  wcOpcodeOf,
} from '../memory/ring/enums.js';
import { RING_DEPTH_MAX } from '../memory/ring/ring.js';
import { TelemetryPage } from '../memory/ring/telemetry-page.js';
import { RecvQueue, SendQueue, SGE_COUNT_MAX } from '../memory/ring/work-queue.js';
import type { IpAddress } from '../packet/address.js';
import type { CompletionQueue, WrId } from './completion-queue.js';
import type { RdmaDevice } from './device.js';
import { type DirectCompletion, EVENT_LOOP_TURNS } from './direct-completions.js';
import { DirectPath, NOT_DIRECT } from './direct-path.js';
import { allowedRate } from './estats/allowed-rate.js';
import { type ConnectionProtection, NO_RECORDER, type WorkRecorder } from './estats/connection-telemetry.js';
import type { MappingOffer } from './memory-grants.js';
import type { ProtectionDomain } from './protection-domain.js';
import { decodeAttributes, encodeAttributes, type QpAttr, type QpInfo } from './qp-attributes.js';
import { ReceiveRing, type RecvWorkRequest } from './receive-ring.js';
import { Resource } from './resource.js';
import { checkFields, type SendWorkRequest, writeSend } from './send-work-request.js';
import type { SharedReceiveQueue } from './shared-receive-queue.js';

/** `ibv_qp_init_attr`. */
export interface QueuePairInit {
  /** Default RC. */
  readonly type?: QpTypeName | undefined;
  /** The queue for completions of send work requests. */
  readonly sendCq: CompletionQueue;
  /** Default: the send CQ. */
  readonly recvCq?: CompletionQueue | undefined;
  /** Takes receives from here; there is then no separate receive queue. It must be of the same protection domain. */
  readonly srq?: SharedReceiveQueue | undefined;
  /** Work requests the queues hold, 1..2^20; rounded up to a power of two. Default 128. */
  readonly maxSendWr?: number | undefined;
  /** The same for receives. Default 128. */
  readonly maxRecvWr?: number | undefined;
  /** Scatter/gather elements a work request, 1..32. Default 1. */
  readonly maxSendSge?: number | undefined;
  /** The same for receives, 1..32. Default 1. */
  readonly maxRecvSge?: number | undefined;
  /** Bytes of inline data a work request, 0..65536. Default 64. */
  readonly maxInlineBytes?: number | undefined;
  /** Every send work request completes visibly (`sq_sig_all`). */
  readonly signalAll?: boolean | undefined;
}

const QUEUE_PAIR_INIT: OptionNames<QueuePairInit> = {
  type: true,
  sendCq: true,
  recvCq: true,
  srq: true,
  maxSendWr: true,
  maxRecvWr: true,
  maxSendSge: true,
  maxRecvSge: true,
  maxInlineBytes: true,
  signalAll: true,
};

/** States in which it executes requests of the peer. */
const EXECUTING: ReadonlySet<QpStateName> = new Set(['RTR', 'RTS', 'SQD']);
const CONNECTED_TYPES: ReadonlySet<QpTypeName> = new Set(['RC', 'UC']);
/** Misspelt fields show in the first requests of a program; the rest are not slowed down by the check. */
const REQUESTS_CHECKED = 64;
const DEPTH_DEFAULT = 128;
/** Answers leave with the next poll, unless the link partner pauses them or a rate control spreads READ responses. */
const SETTLE_MAX_NS = 1e9;
const INLINE_DEFAULT = 64;
/** Bytes of inline data a work request, at most. */
const INLINE_MAX = 65_536;

function checkHandle(name: string, object: { readonly handle: number } | null, what: string): void {
  checkKind(name, object, Number.isInteger(object?.handle), what);
}

function queueSizes(init: QueuePairInit) {
  const { maxSendWr = DEPTH_DEFAULT, maxRecvWr = DEPTH_DEFAULT, maxInlineBytes = INLINE_DEFAULT } = init;
  const { maxSendSge = 1, maxRecvSge = 1 } = init;
  checkWhole('maxSendWr', maxSendWr, 1, RING_DEPTH_MAX);
  checkWhole('maxRecvWr', maxRecvWr, 1, RING_DEPTH_MAX);
  checkWhole('maxSendSge', maxSendSge, 1, SGE_COUNT_MAX);
  checkWhole('maxRecvSge', maxRecvSge, 1, SGE_COUNT_MAX);
  checkWhole('maxInlineBytes', maxInlineBytes, 0, INLINE_MAX);
  return { maxSendWr, maxRecvWr, maxSendSge, maxRecvSge, maxInlineBytes };
}

function checkInit({ type = 'RC', sendCq, recvCq = sendCq, srq, signalAll = false }: QueuePairInit) {
  checkOneOf('type', type, Object.keys(QP_TYPES));
  checkHandle('sendCq', sendCq, 'a completion queue');
  checkHandle('recvCq', recvCq, 'a completion queue');
  if (srq !== undefined) checkHandle('srq', srq, 'a shared receive queue');
  checkKind('signalAll', signalAll, typeof signalAll === 'boolean', 'true or false');
  return { type, sendCq, recvCq, srq, signalAll };
}

async function watch(device: RdmaDevice, qpn: number, depth: number, memoryIds: number[]): Promise<WorkRecorder> {
  const { estats, link } = device;
  if (estats === undefined) return NO_RECORDER;
  const page = new TelemetryPage(device.memoryOf(TelemetryPage.bytesFor(depth)), depth);
  const memory = link.attach(page.memory);
  memoryIds.push(memory);
  await device.command('watchQp', { qpn, memory });
  return estats.watch(qpn, page, {
    inspect: async () => {
      const { remote, ...attributes } = decodeAttributes(await device.command('queryQp', { qpn }));
      return { ...attributes, remote: remote.text, ...(await device.command('inspectQp', { qpn })) };
    },
    allowedRate: async () => allowedRate(await device.command('queryQp', { qpn })),
  });
}

interface QueuePairParts {
  readonly type: QpTypeName;
  readonly qpn: number;
  readonly sq: SendQueue;
  readonly receives: ReceiveRing;
  readonly rings: readonly ArrayBufferLike[];
  readonly memoryIds: number[];
  readonly recorder: WorkRecorder;
}

/** A queue pair (`ibv_qp`), made by {@link ProtectionDomain.createQp}. */
export class QueuePair extends Resource {
  /** Unique among the objects of the device. */
  readonly kind = 'QP';
  /** The device that it belongs to. */
  readonly device: RdmaDevice;
  /** The protection domain that it belongs to. */
  readonly pd: ProtectionDomain;
  /** Its number, which the peer needs; 24 bits, random. */
  readonly qpn: number;
  /** Its transport. */
  readonly type: QpTypeName;
  readonly #sq: SendQueue;
  readonly #receives: ReceiveRing;
  readonly #srq: SharedReceiveQueue | undefined;
  readonly #sendCq: CompletionQueue;
  readonly #recvCq: CompletionQueue;
  readonly #sendWrIds: WrId[];
  #sendReleased: number;
  #requestsToCheck = REQUESTS_CHECKED;
  readonly #rings: readonly ArrayBufferLike[];
  readonly #memoryIds: number[];
  #settling: Promise<void> | undefined;
  #onSettled = () => {};
  readonly #recorder: WorkRecorder;
  #state: number = QPS_RESET;
  #remote: IpAddress | undefined;
  #resets = 0;
  readonly #signalsAll: boolean;
  #accessFlags = 0;
  /** Where peers find what they may do through it; made when a peer of this host asks. */
  #offer: MappingOffer | undefined;
  #direct: DirectPath | undefined;
  #directPosted = 0;
  #directReleased = 0;

  private constructor(
    pd: ProtectionDomain,
    init: QueuePairInit,
    { type, qpn, sq, receives, rings, memoryIds, recorder }: QueuePairParts,
  ) {
    super(pd);
    this.device = pd.device;
    this.pd = pd;
    this.type = type;
    this.qpn = qpn;
    this.#sq = sq;
    this.#sendReleased = sq.producer;
    this.#receives = receives;
    this.#srq = init.srq;
    this.#sendCq = init.sendCq;
    this.#recvCq = init.recvCq ?? init.sendCq;
    this.#sendWrIds = Array<WrId>(sq.depth).fill(0);
    this.#rings = rings;
    this.#signalsAll = init.signalAll === true;
    this.#memoryIds = memoryIds;
    this.#recorder = recorder;
  }

  /** @internal */
  static async create(pd: ProtectionDomain, init: QueuePairInit): Promise<QueuePair> {
    const { device } = pd;
    if (init?.sendCq === undefined) {
      throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', 'a queue pair needs a completion queue', 'createQp({ sendCq })');
    }
    checkOptions('createQp', init, QUEUE_PAIR_INIT);
    const { type, sendCq, recvCq, srq, signalAll } = checkInit(init);
    const { maxSendWr, maxRecvWr, maxSendSge, maxRecvSge, maxInlineBytes } = queueSizes(init);
    const rings: ArrayBufferLike[] = [];
    const take = (bytes: number) => {
      const memory = device.rings.take(bytes);
      rings.push(memory);
      return memory;
    };
    const memoryIds: number[] = [];
    let made: number | undefined;
    try {
      const sq = SendQueue.create(take, maxSendWr, maxSendSge, maxInlineBytes);
      const rq = RecvQueue.create(take, maxRecvWr, maxRecvSge);
      for (const memory of rings) memoryIds.push(device.link.attach(memory));
      const { qpn } = await device.command('createQp', {
        pd: pd.handle,
        type: QP_TYPES[type],
        sendCq: sendCq.handle,
        recvCq: recvCq.handle,
        srq: srq?.handle ?? 0,
        sqMemory: memoryIds[0],
        rqMemory: memoryIds[1],
        signalAll: Number(signalAll),
      });
      made = qpn;
      const receives = srq?.receives ?? new ReceiveRing(rq);
      const recorder = CONNECTED_TYPES.has(type) ? await watch(device, qpn, sq.depth, memoryIds) : NO_RECORDER;
      const qp = new QueuePair(pd, init, { type, qpn, sq, receives, rings, memoryIds, recorder });
      device.track(qp);
      return qp;
    } catch (error) {
      if (made !== undefined) await device.command('destroyQp', { qpn: made }).catch(() => {});
      for (const id of memoryIds) device.link.detach(id);
      for (const memory of rings) device.rings.give(memory);
      throw error;
    }
  }

  /** The state as known to this side: the last `modify`, or ERR after QP_FATAL. */
  get state(): QpStateName {
    return QP_STATE_NAMES[this.#state];
  }

  /**
   * Changes attributes, and the state if one is given. Rejects, with nothing changed, when the transition does not
   * allow them. From the call on until a move to RESET is done, nothing can be posted.
   */
  async modify(attr: QpAttr): Promise<void> {
    this.#expectOpen();
    const { mask, values } = encodeAttributes(attr);
    const resets = attr.state === 'RESET' ? 1 : 0;
    this.#resets += resets;
    try {
      if (attr.state !== undefined && !EXECUTING.has(attr.state)) await this.#withdrawAccess();
      await this.device.command('modifyQp', { qpn: this.qpn, mask, ...values });
      this.#modified(attr, values.state);
    } finally {
      this.#resets -= resets;
      this.#publishAccess();
    }
    if (this.#offer !== undefined) await this.device.grants!.quiesce(this.#offer.slot);
  }

  /** What a mapping peer may do follows the state and the access flags, as what the NIC executes. */
  #publishAccess(): void {
    if (this.#offer === undefined) return;
    const executes = !this.isClosed && this.#resets === 0 && EXECUTING.has(this.state);
    this.device.grants!.setAccess(this.#offer.slot, executes ? this.#accessFlags : undefined);
  }

  /** Resolves when a peer copies nothing any more. */
  async #withdrawAccess(): Promise<void> {
    if (this.#offer === undefined) return;
    this.device.grants!.setAccess(this.#offer.slot, undefined);
    await this.device.grants!.quiesce(this.#offer.slot);
  }

  /**
   * Where a peer of the same memory domain finds the regions it may map; undefined where there is no mapping. @internal
   */
  offerMapping(): MappingOffer | undefined {
    if (this.type !== 'RC') return undefined;
    this.#offer ??= this.device.grants?.openQueuePair(this.qpn, this.pd.handle);
    this.#publishAccess();
    return this.#offer;
  }

  /** The peer cannot map regions: others may have the slot. @internal */
  withdrawMapping(): void {
    if (this.#offer !== undefined) this.device.grants!.closeQueuePair(this.#offer.slot);
    this.#offer = undefined;
  }

  /** Works directly on mapped regions of the connected peer from now on; false: that is not possible. @internal */
  mapPeer(remoteQpn: number, offer: MappingOffer): boolean {
    const { grants } = this.device;
    const peer = grants?.openPeer(remoteQpn, offer);
    if (grants === undefined || peer === undefined) return false;
    this.unmapPeer();
    this.#direct = new DirectPath(this.pd, grants, offer, peer);
    this.#recorder.mapped(this.#direct.copies);
    return true;
  }

  /** Whether operations on the peer's region of this key are copies. @internal */
  maps(rkey: number): boolean {
    return this.#direct?.maps(rkey) === true;
  }

  /** The peer has left: everything takes the send queue from now on. @internal */
  unmapPeer(): void {
    this.#direct?.close();
    this.#direct = undefined;
  }

  #modified(attr: QpAttr, state: number): void {
    if (attr.destQpn !== undefined && attr.av !== undefined) {
      this.#recorder.connected(attr.av.address.text, attr.destQpn);
    }
    if (attr.av !== undefined) this.#remote = attr.av.address;
    if (attr.accessFlags !== undefined) this.#accessFlags = attr.accessFlags;
    if (attr.state === undefined) return;
    this.#state = state;
    if (state === QPS_ERR) this.#flushLatePosts();
    if (state !== QPS_RESET) return;
    this.#remote = undefined;
    this.unmapPeer();
    this.withdrawMapping();
    this.#directReleased = this.#directPosted;
    this.#settling = undefined;
    this.#forgetCompletions();
    this.#sendReleased = this.#sq.producer;
    if (this.#srq === undefined) this.#receives.clear();
  }

  get #name(): string {
    return `QP 0x${this.qpn.toString(16)}`;
  }

  #expectOpen(): void {
    if (this.isClosed) throw new RoceError('ERR_ROCE_CLOSED', `${this.#name} is closed`);
  }

  /**
   * Work may be posted from state `from` on, but not while the queue pair leaves its connection: it would never
   * complete.
   */
  #expectPostable(from: number, hint: string): void {
    if (this.#state >= from && this.#resets === 0 && !this.isClosed) return;
    this.#expectOpen();
    const where = this.#resets > 0 ? 'is on its way to RESET' : `is in ${this.state}`;
    throw new RoceError('ERR_ROCE_INVALID_STATE', `${this.#name} ${where}: ${hint}`, 'connect it first');
  }

  /** Receives posted before this side knew of the error rang no doorbell. */
  #flushLatePosts(): void {
    this.device.link.ringDoorbell(this.qpn);
  }

  #forgetCompletions(): void {
    const onReceive = (cookie: number) => {
      if (this.#srq !== undefined) this.#receives.done(cookie);
    };
    for (const cq of new Set([this.#sendCq, this.#recvCq])) cq.forget(this.qpn, onReceive);
  }

  /** Where the peer is, by the address vector; undefined without one. */
  get remote(): IpAddress | undefined {
    return this.#remote;
  }

  /** Says in telemetry what protects its packets. @internal */
  noteProtection(protection: ConnectionProtection): void {
    this.#recorder.secured(protection);
  }

  /** Attributes and counters as the NIC has them now (`ibv_query_qp`). Rejects with ERR_ROCE_CLOSED. */
  async query(): Promise<QpInfo> {
    this.#expectOpen();
    const info = decodeAttributes(await this.device.command('queryQp', { qpn: this.qpn }));
    this.#state = QP_STATE_NAMES.indexOf(info.state);
    return info;
  }

  /** Send work requests that fit right now. */
  get sendRoom(): number {
    return this.#roomAt(this.#sq.producer);
  }

  #roomAt(index: number): number {
    return this.#sq.depth - ((index - this.#sendReleased) >>> 0) - (this.#directPosted - this.#directReleased);
  }

  /**
   * Posts send work requests. Throws ERR_ROCE_QUEUE_FULL, ERR_ROCE_CLOSED, and ERR_ROCE_INVALID_STATE before RTS and on
   * the way to RESET. Throws ERR_ROCE_LIMIT for more SGEs or inline bytes than the queue takes. Throws
   * ERR_ROCE_OUT_OF_RANGE, ERR_ROCE_CONFLICT or ERR_ROCE_INVALID_ARGUMENT for an invalid request. Throws
   * ERR_ROCE_UNKNOWN_NAME for an unknown field; only the first 64 requests of a queue pair are checked for that, for
   * speed. The requests before the refused one are posted. The completion reports all later errors.
   *
   * Do not change the data before the completion, as with ibv_post_send(3); `inline` data are copied at once. Data that
   * are changed earlier arrive old, new or mixed. With RC and memory that several threads share, a packet may be
   * dropped and retransmitted.
   */
  postSend(...requests: readonly SendWorkRequest[]): void {
    this.#expectPostable(QPS_RTS, 'it sends in RTS only');
    const nowNs = this.device.telemetryNowNs();
    const first = this.#sq.producer;
    try {
      for (const request of requests) this.#postOne(request, nowNs);
    } finally {
      // Direct operations are done.
      if (this.#direct === undefined || this.#sq.producer !== first) this.device.link.ringDoorbell(this.qpn);
    }
  }

  #postOne(request: SendWorkRequest, nowNs: number): void {
    const index = this.#sq.producer;
    if (this.#roomAt(index) <= 0) {
      throw new RoceError(
        'ERR_ROCE_QUEUE_FULL',
        `the send queue holds ${this.#sq.depth} work requests, none of them known to be done`,
        'poll the completion queue, signal at least one request a queue length, or make the queue deeper',
      );
    }
    if (this.#requestsToCheck > 0) {
      this.#requestsToCheck--;
      checkFields(request);
    }
    if (this.#direct !== undefined && this.#isDone(request, index, nowNs, this.#direct)) return;
    let flags = request.signaled === false ? 0 : SEND_SIGNALED;
    if ('solicited' in request && request.solicited === true) flags |= SEND_SOLICITED;
    if (request.fence === true) flags |= SEND_FENCE;
    writeSend(this.#sq, index, request, flags);
    this.#sendWrIds[index & this.#sq.mask] = request.wrId ?? 0;
    this.#recorder.posted(index, nowNs);
    this.#sq.producer = (index + 1) >>> 0;
  }

  /**
   * Executes a request directly if nothing that was posted before can still be under way. False: it takes the send
   * queue. An event that was not handled may say that the queue pair has failed.
   */
  #isDone(request: SendWorkRequest, index: number, nowNs: number, direct: DirectPath): boolean {
    if (this.#sendReleased !== index || this.#state !== QPS_RTS || this.device.link.events.fill > 0) return false;
    const signals = this.#signalsAll || request.signaled !== false;
    if (signals && this.#sendCq.directFill >= this.#sendCq.depth) return false;
    const byteLen = direct.execute(request, this.#sq.maxSge, this.#sq.maxInlineBytes);
    if (byteLen === NOT_DIRECT) return false;
    EVENT_LOOP_TURNS.spend(byteLen);
    const sequence = this.#directPosted++;
    if (signals) {
      const { wrId = 0 } = request;
      const opcode = wcOpcodeOf(WR_OPCODES[request.opcode]);
      this.#sendCq.pushDirect({ qp: this, sequence, wrId, opcode, byteLen, postedNs: nowNs });
    }
    return true;
  }

  /** The completion of a direct operation was polled. @internal */
  directDone({ sequence, opcode, postedNs }: DirectCompletion, nowNs: number): void {
    this.#directReleased = sequence + 1;
    this.#recorder.direct(opcode, postedNs, nowNs);
  }

  /**
   * Posts a receive work request. Not possible with an SRQ, before INIT, on the way to RESET, and after `close`.
   */
  postRecv(request: RecvWorkRequest = {}): void {
    if (this.#srq !== undefined) {
      throw new RoceError('ERR_ROCE_CONFLICT', 'this QP receives from an SRQ', 'post to the SRQ');
    }
    this.#expectPostable(QPS_INIT, 'receives can be posted from INIT on');
    this.#receives.post(request);
    if (this.#state === QPS_ERR) this.device.link.ringDoorbell(this.qpn);
  }

  /**
   * A send work request in hex and decoded, for debugging. `index` counts from 0 for the first one ever posted;
   * default: the newest. The queue remembers its last `depth` requests.
   */
  dumpWqe(index = (this.#sq.producer - 1) >>> 0): string {
    return dumpWqe(this.#sq, index);
  }

  /**
   * Executes no more requests of the peer, and resolves when the answers to earlier ones have left: what the program
   * has received is acknowledged before the queue pair disappears. Resolves after {@link SETTLE_MAX_NS} in any case.
   * Never rejects. @internal
   */
  settle(): Promise<void> {
    this.#settling ??= this.#settle().catch(() => {});
    return this.#settling;
  }

  async #settle(): Promise<void> {
    const { clock } = this.device;
    const deadlineNs = clock.nowNs() + SETTLE_MAX_NS;
    for (;;) {
      const { owed } = await this.device.command('settleQp', { qpn: this.qpn });
      if (owed !== 1 || clock.nowNs() >= deadlineNs) return;
      await new Promise<void>((resolve) => {
        const cancel = clock.wakeAt(deadlineNs, resolve);
        this.#onSettled = () => {
          cancel();
          resolve();
        };
      });
    }
  }

  /** Every answer may have left. @internal */
  onSettled(): void {
    this.#onSettled();
  }

  /** @internal */
  onFatal(): void {
    this.#state = QPS_ERR;
    this.#publishAccess();
    this.#onSettled();
    this.#flushLatePosts();
  }

  /**
   * A send completion was polled at `nowNs` of the telemetry's clock: it covers all earlier, unsignaled ones.
   * @internal
   */
  sendDone({ index, status, opcode }: Cqe, nowNs: number): WrId {
    this.#recorder.polled(index, status, opcode, nowNs);
    this.#directReleased = this.#directPosted;
    this.#sendReleased = (index + 1) >>> 0;
    return this.#sendWrIds[index & this.#sq.mask];
  }

  /** @internal */
  receiveDone(cookie: number): WrId {
    return this.#receives.done(cookie);
  }

  protected override async release(): Promise<void> {
    this.unmapPeer();
    await this.#withdrawAccess();
    if (CONNECTED_TYPES.has(this.type)) await this.settle();
    await this.device.command('destroyQp', { qpn: this.qpn });
    this.#state = QPS_RESET;
    this.#forgetCompletions();
    this.#recorder.closed();
    this.device.untrack(this);
    this.withdrawMapping();
    for (const id of this.#memoryIds) this.device.link.detach(id);
    for (const memory of this.#rings) this.device.rings.give(memory);
  }
}
