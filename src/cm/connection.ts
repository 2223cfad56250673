/**
 * A connection for programs that want results rather than completions: every operation is a promise. Buffers are registered for the
 * time of one operation; programs that care for speed post work requests on `connection.qp` themselves.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { RoceError } from '../core/errors.js';
import { Access } from '../verbs/access.js';
import {
  type CompletionQueue,
  completionError,
  describeCompletion,
  type WorkCompletion,
} from '../verbs/completion-queue.js';
import type { RdmaDevice } from '../verbs/device.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import { Resource } from '../verbs/resource.js';
import type { SendWorkRequest } from '../verbs/send-work-request.js';
import type { Agreement, RemoteRegion } from './exchange.js';

/** What a connection is made of; made by `listen` and `connect`. */
export interface ConnectionParts {
  /** Protection domain of the rest. */
  readonly pd: ProtectionDomain;
  /** In RTS. */
  readonly qp: QueuePair;
  /** Where its sends complete. */
  readonly sendCq: CompletionQueue;
  /** Where its receives complete. */
  readonly recvCq: CompletionQueue;
  /** Memory of all receive buffers, one after another; the connection gives it back to the device's scratch. */
  readonly receivePool: MemoryRegion;
  /** Bytes of each receive buffer in the pool: the longest message that can be received. */
  readonly messageBytesMax: number;
}

/** How the two sides know of each other beside the queue pair: a TCP connection, or the connection manager. */
export interface PeerPresence {
  /** False once the peer has ended the connection, or is gone. */
  readonly isOpen: boolean;
  /** Resolves when the peer has ended the connection, or is gone. */
  readonly ended: Promise<void>;
  /** Ends it from this side. */
  close(): Promise<void>;
}

/** A received message. */
export interface Message {
  /** A copy: it stays. */
  readonly data: Buffer;
  /** Four bytes the sender attached, as a big-endian number. */
  readonly immediate: number | undefined;
}

/** A work request without what the connection adds. */
type Operation = SendWorkRequest extends infer W
  ? W extends unknown
    ? Omit<W, 'wrId' | 'signaled' | 'fence'>
    : never
  : never;

/** Far more than an engine in another thread needs to report what it has done. */
const FLUSH_GRACE_MS = 100;

interface Pending {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** A connection to one peer, made by {@link connect} and {@link Listener.accept}. */
export class Connection extends Resource {
  /** Before what it is made of, which the device closes too. */
  override readonly closeRank = -1;
  /** For work requests of the program's own. Completions belong to the connection. */
  readonly qp: QueuePair;
  /** Path MTU, recovery scheme and what else was agreed. */
  readonly agreement: Agreement;
  readonly #parts: ConnectionParts;
  readonly #peer: PeerPresence;
  readonly #onClosed: () => void;
  readonly #pending = new Map<number, Pending>();
  /** Arrived, and not asked for yet. Each holds its receive buffer, so that a peer who sends more has to wait. */
  readonly #messages: WorkCompletion[] = [];
  /** The same when the connection is closed and its receive buffers serve another. */
  #left: Message[] = [];
  /** Ends when its completion queues are closed. */
  readonly #served: Promise<unknown>;
  readonly #receivers: Array<{ resolve: (message: Message) => void; reject: (error: Error) => void }> = [];
  /** Waiting for room in the send queue. */
  readonly #queued: Array<Pending & { readonly operation: Operation }> = [];
  #nextWrId = 1;
  /** Why the connection is of no use any more: the first failure, not the flushes after it. */
  #failure: RoceError | undefined;
  /** The peer has ended the connection: no message will come. */
  #isLeft = false;
  /** It has done so while nothing was wrong: what fails from then on, fails because nobody is there. */
  #isLeftInOrder = false;

  private constructor(parts: ConnectionParts, peer: PeerPresence, agreement: Agreement, onClosed: () => void) {
    super(parts.qp.device);
    this.#parts = parts;
    this.#peer = peer;
    this.#onClosed = onClosed;
    this.agreement = agreement;
    this.qp = parts.qp;
    this.#served = Promise.all([
      this.#serveSends().catch((error: RoceError) => this.#lose(error)),
      this.#serveReceives().catch((error: RoceError) => this.#lose(error)),
    ]);
    void this.#watchPeer();
  }

  /** Takes over a queue pair in RTS, whose receives are posted, and serves it at once. @internal */
  static over(
    parts: ConnectionParts,
    peer: PeerPresence,
    agreement: Agreement,
    onClosed: () => void = () => {},
  ): Connection {
    return new Connection(parts, peer, agreement, onClosed);
  }

  /** The device that it belongs to. */
  get device(): RdmaDevice {
    return this.qp.device;
  }

  /** The peer has left, and the program has taken what came before. @internal */
  get isSpent(): boolean {
    return this.#isLeft && this.#messages.length === 0;
  }

  /** Memory the peer opened for us; undefined when it opened none. */
  get remote(): RemoteRegion | undefined {
    return this.agreement.region;
  }

  /**
   * Sends one message. Resolves when the peer's NIC has acknowledged it. Rejects with ERR_ROCE_LIMIT when it is longer than the peer's
   * receives (`messageBytesMax` of its options, 64 KiB by default).
   */
  async send(data: Uint8Array, options: { immediate?: number } = {}): Promise<void> {
    const { immediate } = options;
    const { messageBytesMax = Number.POSITIVE_INFINITY } = this.agreement;
    if (data.length > messageBytesMax) {
      throw new RoceError(
        'ERR_ROCE_LIMIT',
        `a message of ${data.length} bytes is longer than the ${messageBytesMax} the peer can receive`,
        'send it in pieces, write it into memory the peer opens, or let the peer pass a larger `messageBytesMax`',
      );
    }
    await this.#withRegion(data, (mr) =>
      this.#run(
        immediate === undefined
          ? { opcode: 'SEND', sges: [mr.sge()] }
          : { opcode: 'SEND_WITH_IMM', immediate, sges: [mr.sge()] },
      ),
    );
  }

  /** The next message from the peer, in the order sent. Rejects when the connection fails, is closed, or the peer has closed it. */
  receive(): Promise<Message> {
    const left = this.#left.shift();
    if (left !== undefined) return Promise.resolve(left);
    const wc = this.#messages.shift();
    if (wc !== undefined) return Promise.resolve(this.#takeMessage(wc));
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    if (this.#isLeft) return Promise.reject(leftByPeer());
    return new Promise((resolve, reject) => this.#receivers.push({ resolve, reject }));
  }

  /** Writes into the peer's memory at `offset` of the region it opened; its CPU takes no part. */
  async write(data: Uint8Array, offset = 0): Promise<void> {
    const target = this.#target(offset, data.length);
    await this.#withRegion(data, (mr) => this.#run({ opcode: 'RDMA_WRITE', sges: [mr.sge()], ...target }));
  }

  /** Reads `length` bytes of the peer's memory from `offset` of the region it opened. */
  async read(length: number, offset = 0): Promise<Buffer> {
    const target = this.#target(offset, length);
    const data = this.device.allocate(length);
    await this.#withRegion(data, (mr) => this.#run({ opcode: 'RDMA_READ', sges: [mr.sge()], ...target }));
    return data;
  }

  /** Adds to the 64-bit number at `offset` (a multiple of 8) of the peer's region; resolves to the value before. */
  fetchAdd(offset: number, add: bigint): Promise<bigint> {
    return this.#atomic(offset, (sges, target) => ({
      opcode: 'ATOMIC_FETCH_AND_ADD',
      add: BigInt.asUintN(64, add),
      sges,
      ...target,
    }));
  }

  /** Stores `desired` if the number there equals `expected`; resolves to the value before. */
  compareSwap(offset: number, expected: bigint, desired: bigint): Promise<bigint> {
    return this.#atomic(offset, (sges, target) => ({
      opcode: 'ATOMIC_CMP_AND_SWP',
      compare: expected,
      swap: desired,
      sges,
      ...target,
    }));
  }

  async #atomic(
    offset: number,
    operation: (
      sges: readonly [ReturnType<MemoryRegion['sge']>],
      target: { remoteAddr: bigint; rkey: number },
    ) => Operation,
  ): Promise<bigint> {
    const target = this.#target(offset, 8);
    if (target.remoteAddr % 8n !== 0n) {
      // The peer would refuse it, and the connection end.
      throw new RoceError(
        'ERR_ROCE_OUT_OF_RANGE',
        `an atomic operation at offset ${offset}, which is address 0x${target.remoteAddr.toString(16)} of the peer`,
        'the address must be a multiple of 8',
      );
    }
    const result = this.device.allocate(8);
    await this.#withRegion(result, (mr) => this.#run(operation([mr.sge()], target)));
    return result.readBigUInt64LE();
  }

  #target(offset: number, length: number): { remoteAddr: bigint; rkey: number } {
    const { remote } = this;
    if (remote === undefined) {
      throw new RoceError(
        'ERR_ROCE_INVALID_STATE',
        'the peer opened no memory',
        'it has to pass `region` when it listens or connects',
      );
    }
    const isRange = Number.isInteger(offset) && Number.isInteger(length) && offset >= 0 && length >= 0;
    if (!isRange || length > remote.length - offset) {
      throw new RoceError(
        'ERR_ROCE_OUT_OF_RANGE',
        `[${offset}, ${offset} + ${length}) is not inside the peer's region of ${remote.length} bytes`,
      );
    }
    return { remoteAddr: remote.addr + BigInt(offset), rkey: remote.rkey };
  }

  async #withRegion(data: Uint8Array, use: (mr: MemoryRegion) => Promise<void>): Promise<void> {
    if (!(data instanceof Uint8Array)) {
      throw new RoceError(
        'ERR_ROCE_INVALID_ARGUMENT',
        `data is bytes, not a ${typeof data}`,
        'pass a Buffer or Uint8Array: Buffer.from(text)',
      );
    }
    if (this.#failure !== undefined) throw this.#failure;
    const { scratch } = this.device;
    // What the NIC cannot reach goes through memory that it can.
    const copy = this.device.reaches(data) ? undefined : scratch.take(data.length);
    copy?.set(data);
    const mr = await this.#parts.pd.regMr(copy ?? data, Access.LOCAL_WRITE);
    try {
      await use(mr);
    } finally {
      await mr.close();
      if (copy !== undefined) scratch.give(copy);
    }
  }

  /** Operations are posted in the order of these calls. */
  #run(operation: Operation): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#queued.push({ operation, resolve, reject });
      this.#postQueued();
    });
  }

  #postQueued(): void {
    while (this.#queued.length > 0 && (this.#failure !== undefined || this.qp.sendRoom > 0)) {
      const { operation, resolve, reject } = this.#queued.shift()!;
      if (this.#failure !== undefined) {
        reject(this.#failure);
        continue;
      }
      const wrId = this.#nextWrId++;
      this.#pending.set(wrId, { resolve, reject });
      try {
        this.qp.postSend({ ...operation, wrId } as SendWorkRequest);
      } catch (error) {
        this.#pending.delete(wrId);
        reject(error as Error);
      }
    }
  }

  async #serveSends(): Promise<void> {
    for await (const wc of this.#parts.sendCq) {
      if (wc.status !== 0) this.#fail(wc);
      const pending = this.#pending.get(Number(wc.wrId));
      this.#pending.delete(Number(wc.wrId));
      if (wc.status === 0) pending?.resolve();
      else pending?.reject(this.#failure!);
      this.#postQueued();
    }
  }

  async #serveReceives(): Promise<void> {
    for await (const wc of this.#parts.recvCq) this.#onReceive(wc);
  }

  #onReceive(wc: WorkCompletion): void {
    if (wc.statusName === 'WR_FLUSH_ERR') void this.#onFlushedReceive(wc);
    else if (wc.status !== 0) this.#fail(wc);
    else if (this.#receivers.length === 0) this.#messages.push(wc);
    else this.#receivers.shift()!.resolve(this.#takeMessage(wc));
  }

  /** A flush follows from something else: the end of the connection, when RDMA CM tells of it, is heard of a moment later. */
  async #onFlushedReceive(wc: WorkCompletion): Promise<void> {
    await this.peerClosed(FLUSH_GRACE_MS);
    if (!this.#isLeft) this.#fail(wc);
  }

  /** Whoever waits for a message must hear that the peer is gone: nothing on the queue pair would say so. */
  async #watchPeer(): Promise<void> {
    await this.#peer.ended;
    if (this.isClosed) return;
    // What was acknowledged to the peer before it left is in the queue, though perhaps not yet looked at.
    for (let wc = this.#parts.recvCq.pollOne(); wc !== undefined; wc = this.#parts.recvCq.pollOne())
      this.#onReceive(wc);
    this.#isLeft = true;
    this.#isLeftInOrder = this.#failure === undefined;
    for (const { reject } of this.#receivers.splice(0)) reject(leftByPeer());
  }

  /** Copies the message out of its receive buffer, which is posted again. */
  #takeMessage(wc: WorkCompletion): Message {
    const { receivePool, messageBytesMax } = this.#parts;
    const offset = Number(wc.wrId) * messageBytesMax;
    // A WRITE with immediate data consumes a receive but puts nothing into its buffer.
    const length = wc.opcode === 'RECV' ? wc.byteLen : 0;
    const data = Buffer.from(receivePool.bytes.subarray(offset, offset + length));
    if (!this.qp.isClosed) this.qp.postRecv({ wrId: wc.wrId, sges: [receivePool.sge(offset, messageBytesMax)] });
    return { data, immediate: wc.immediate };
  }

  #fail(wc: WorkCompletion): void {
    if (this.#failure !== undefined || this.isClosed) return;
    this.#end(this.#errorOf(wc));
    void this.#peer.close(); // The other end must not go on alone, whatever the program here does now.
  }

  #errorOf(wc: WorkCompletion): RoceError {
    const peerIsGone = !this.#peer.isOpen;
    if (peerIsGone || wc.statusName !== 'RETRY_EXC_ERR') return completionError(wc, peerIsGone);
    const { mtu, peer } = this.agreement;
    const through = this.device.link.pathMtuTowards(peer) ?? mtu;
    const hint =
      through < mtu
        ? `the path MTU of the connection is ${mtu}, and no more than ${through} gets through to ${peer} by now: connect again with mtu: ${through}`
        : `the peer does not answer: its program has ended, or packets to its UDP port are lost, perhaps only large ones: the path MTU of the connection is ${mtu}`;
    return new RoceError('ERR_ROCE_COMPLETION', describeCompletion(wc), hint);
  }

  #end(error: RoceError): void {
    this.#failure ??= error;
    for (const { reject } of this.#receivers.splice(0)) reject(this.#failure);
    this.#postQueued();
  }

  /** A completion queue has overrun, or the NIC is gone: nothing that is pending will complete. */
  #lose(error: RoceError): void {
    this.#end(error);
    for (const { reject } of this.#pending.values()) reject(this.#failure!);
    this.#pending.clear();
  }

  /**
   * Every message from the peer until either side closes the connection, or the peer is gone: then it ends, even if what was sent meanwhile
   * fails. A failure before that throws.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<Message, void, undefined> {
    while (!this.isClosed) {
      try {
        yield await this.receive();
      } catch (error) {
        if (this.isClosed || this.#isLeftInOrder) return;
        throw error;
      }
    }
  }

  /** Waits until the peer closes its end too or is gone, at most `timeoutMs`. */
  async peerClosed(timeoutMs = Number.POSITIVE_INFINITY): Promise<void> {
    if (timeoutMs === Number.POSITIVE_INFINITY) await this.#peer.ended;
    else await Promise.race([this.#peer.ended, delay(timeoutMs, undefined, { ref: false })]);
  }

  /** Ends the connection on this side; the peer's next operation fails. */
  protected override async release(): Promise<void> {
    this.#end(new RoceError('ERR_ROCE_CLOSED', 'the connection is closed'));
    for (const { reject } of this.#pending.values()) reject(this.#failure!);
    this.#pending.clear();
    await this.#peer.close();
    await this.#parts.pd.close();
    await this.#parts.sendCq.close();
    await this.#parts.recvCq.close();
    await this.#served;
    // What nobody has asked for yet stays, though its buffers serve others from here on.
    this.#left = this.#messages.splice(0).map((wc) => this.#takeMessage(wc));
    this.device.scratch.give(this.#parts.receivePool.bytes);
    this.#onClosed();
  }
}

function leftByPeer(): RoceError {
  return new RoceError('ERR_ROCE_CLOSED', 'the peer has closed the connection');
}
