/**
 * A connection whose operations are promises. Bytes are registered for one operation, memory of `register` once; for
 * the highest rates post work requests on `connection.qp`.
 */

import { checkBoolean, checkKind, checkOptions, checkWhole, ifGiven, type OptionNames } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import { WAIT_OPTIONS, WaitDeadline, type WaitOptions, waitForEvent } from '../core/wait.js';
import { ATOMIC_BYTES } from '../packet/roce.js';
import { Access } from '../verbs/access.js';
import { completionError, describeCompletion, type WorkCompletion } from '../verbs/completion-queue.js';
import type { RdmaDevice } from '../verbs/device.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import { Resource } from '../verbs/resource.js';
import type { ConnectionParts } from './connection-parts.js';
import type { ControlConnection } from './control-connection.js';
import type { Agreement, RemoteRegion } from './exchange.js';
import { Inbox, type Message } from './inbox.js';
import { bytesOf, checkMemory, type Memory } from './memory.js';
import { type Operation, Operations } from './operations.js';
import { atomicTargetIn, type RemoteTarget, targetIn } from './remote-target.js';
import { ConnectionStream, type StreamOptions } from './stream/duplex.js';
import { MessageStream } from './stream/message-stream.js';
import { type WebStreams, webStreamsOver } from './stream/web.js';
import { type Elements, Transfers } from './transfers.js';

/** Options of {@link Connection.send}. */
export interface SendOptions extends WaitOptions {
  /** Immediate data: an unsigned 32-bit number that the receiver gets with the message. */
  readonly immediate?: number | undefined;
}

/** Options of {@link Connection.receive}. */
export interface ReceiveOptions extends WaitOptions {
  /**
   * The message is a view of its receive buffer, not a copy. It is valid until the program calls `message.release()`,
   * which it must do: until then one receive less is posted for the peer. Default false.
   */
  readonly view?: boolean | undefined;
}

const SEND_OPTIONS: OptionNames<SendOptions> = { ...WAIT_OPTIONS, immediate: true };
const STREAM_OPTIONS: OptionNames<StreamOptions> = { highWaterMark: true };
const RECEIVE_OPTIONS: OptionNames<ReceiveOptions> = { ...WAIT_OPTIONS, view: true };

const FLUSH_GRACE_MS = 100;
const SEND_BATCH = 64;

/** A connection to one peer, made by {@link connect} and {@link Listener.accept}. */
export class Connection extends Resource {
  /** Closes before its parts, which the device also closes. */
  override readonly closeRank = -1;
  /** The queue pair, for work requests that the program posts itself. Their completions belong to the connection. */
  readonly qp: QueuePair;
  /** The parameters that both ends have agreed on: path MTU, recovery scheme and more. */
  readonly agreement: Agreement;
  readonly #parts: ConnectionParts;
  readonly #control: ControlConnection;
  readonly #onClosed: () => void;
  readonly #operations: Operations;
  readonly #transfers: Transfers;
  readonly #inbox: Inbox;
  #claimedBy: string | undefined;
  #isLeft = false;
  /** The peer left a working connection: later failures are due to its absence. */
  #isLeftInOrder = false;

  private constructor(parts: ConnectionParts, control: ControlConnection, agreement: Agreement, onClosed: () => void) {
    super(parts.qp.device);
    this.#parts = parts;
    this.#control = control;
    this.#onClosed = onClosed;
    this.agreement = agreement;
    this.qp = parts.qp;
    this.#operations = new Operations(parts.qp);
    this.#transfers = new Transfers(parts.qp.device, parts.pd, this.#operations);
    this.#inbox = new Inbox(parts.qp, parts.receivePool, parts.messageBytesMax);
    const onFailure = (error: Error) => this.#lose(error as RoceError);
    parts.sendCq.serve({ batch: SEND_BATCH, onCompletion: (wc) => this.#onSendDone(wc), onFailure });
    parts.recvCq.serve({ onCompletion: (wc) => this.#onReceive(wc), onFailure });
    void this.#watchPeer();
  }

  /** Takes over a queue pair in RTS, whose receives are posted, and serves it at once. @internal */
  static over(
    parts: ConnectionParts,
    control: ControlConnection,
    agreement: Agreement,
    onClosed: () => void = () => {},
  ): Connection {
    return new Connection(parts, control, agreement, onClosed);
  }

  /** The device that it belongs to. */
  get device(): RdmaDevice {
    return this.qp.device;
  }

  /** The peer has left, and the program has received all earlier messages. @internal */
  get isSpent(): boolean {
    return this.#isLeft && this.#inbox.isEmpty;
  }

  /** Why the connection is unusable: the first failure, not the flushes after it. */
  get #failure(): RoceError | undefined {
    return this.#operations.failure;
  }

  /** Memory the peer opened for us; undefined when it opened none. */
  get remote(): RemoteRegion | undefined {
    return this.agreement.region;
  }

  /** Calls that have not ended: operations, and callers that wait for a message. @internal */
  get unfinished(): { readonly operations: number; readonly receives: number } {
    return { operations: this.#operations.count, receives: this.#inbox.waiting };
  }

  /**
   * Registers memory once, for any number of operations of this connection. A buffer of the program is registered in
   * place. A number makes that many bytes of new, zeroed memory, which every engine reaches. Pass the region, or a
   * `slice` of it, to `send`, `write` and `read` (docs/how-to/write-a-program.md). `access` combines flags of `Access`.
   * Close the region when its last operation has settled, or leave it to the connection. Rejects with
   * ERR_ROCE_UNSUPPORTED for memory that a NIC in a worker cannot reach, ERR_ROCE_CLOSED when the connection is closed.
   */
  async register(memory: Uint8Array | number, access: number = Access.LOCAL_WRITE): Promise<MemoryRegion> {
    if (this.isClosed) throw closedHere();
    return this.#parts.pd.regMr(memory, access);
  }

  /**
   * Sends one message. Resolves when the peer's NIC has acknowledged it. Rejects with ERR_ROCE_LIMIT when it is longer
   * than the peer's receives (`messageBytesMax` of its options, 64 KiB by default). Do not change `data` before the
   * promise settles. If the wait ends early (ERR_ROCE_ABORTED, ERR_ROCE_TIMEOUT), the message may still arrive: do not
   * change `data` before the error's `released` has resolved.
   */
  async send(data: Memory, options?: SendOptions): Promise<void> {
    this.#expectUnclaimed();
    checkMemory(data);
    const deadline = WaitDeadline.of('send', options, this.device.clock, SEND_OPTIONS);
    const immediate = options?.immediate;
    ifGiven(immediate, (value) => checkWhole('immediate', value, 0, 0xffff_ffff));
    const { messageBytesMax = Number.POSITIVE_INFINITY } = this.agreement;
    if (data.length > messageBytesMax) {
      throw new RoceError(
        'ERR_ROCE_LIMIT',
        `a message of ${data.length} bytes is longer than the ${messageBytesMax} the peer can receive`,
        'send it in pieces, write it into memory the peer opens, or let the peer pass a larger `messageBytesMax`',
      );
    }
    await this.#transfers.run(data, deadline, (sges) =>
      immediate === undefined ? { opcode: 'SEND', sges } : { opcode: 'SEND_WITH_IMM', immediate, sges },
    );
  }

  /**
   * The next message from the peer, in the order sent. Rejects when the connection fails or either side has closed it.
   * Rejects with ERR_ROCE_ABORTED or ERR_ROCE_TIMEOUT as the options say; the next call then returns the next message.
   */
  async receive(options?: ReceiveOptions): Promise<Message> {
    this.#expectUnclaimed();
    const deadline = WaitDeadline.of('receive', options, this.device.clock, RECEIVE_OPTIONS);
    ifGiven(options?.view, (value) => checkBoolean('view', value));
    return this.#receive({ view: options?.view === true }, deadline);
  }

  async #receive(asked: { readonly view: boolean }, deadline?: WaitDeadline): Promise<Message> {
    const message = this.#inbox.take(asked);
    if (message !== undefined) return message;
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#isLeft) throw leftByPeer();
    return this.#inbox.wait(asked, deadline);
  }

  /**
   * The connection as a stream of Node: bytes in both directions, with backpressure and half close
   * (docs/how-to/write-a-program.md). Both sides call it, or `webStreams`; from then on the stream owns the messages of
   * the connection. Throws ERR_ROCE_BUSY when something else owns them.
   */
  stream(options: StreamOptions = {}): ConnectionStream {
    checkOptions('stream', options, STREAM_OPTIONS);
    ifGiven(options.highWaterMark, (value) => checkWhole('highWaterMark', value, 0, Number.MAX_SAFE_INTEGER));
    return new ConnectionStream(new MessageStream(this), options);
  }

  /** The same as web streams. */
  webStreams(): WebStreams {
    return webStreamsOver(new MessageStream(this));
  }

  /** The messages belong to `what` from now on. Throws ERR_ROCE_BUSY. @internal */
  claim(what: string): void {
    this.#expectUnclaimed();
    if (this.isClosed) throw closedHere();
    this.#claimedBy = what;
  }

  #expectUnclaimed(): void {
    if (this.#claimedBy === undefined) return;
    throw new RoceError('ERR_ROCE_BUSY', `the messages of this connection belong to ${this.#claimedBy}`);
  }

  /** Receives that the peer can use, and the bytes of each. @internal */
  get receives(): { readonly receiveDepth: number; readonly messageBytesMax: number } {
    const { receivePool, messageBytesMax } = this.#parts;
    return { receiveDepth: Math.floor(receivePool.length / messageBytesMax), messageBytesMax };
  }

  /** Posts an operation for the owner of the messages. @internal */
  post(operation: Operation): Promise<void> {
    return this.#operations.run(operation);
  }

  /** Bytes of the longest message that the peer takes; where it does not say, this side's own. @internal */
  get sendBytesMax(): number {
    return this.agreement.messageBytesMax ?? this.#parts.messageBytesMax;
  }

  /** Sends a message for the owner of the messages. @internal */
  sendClaimed(data: Memory): Promise<void> {
    return this.#transfers.run(data, undefined, (sges) => ({ opcode: 'SEND', sges }));
  }

  /** Reads any announced memory of the peer; `into` is memory of the scratch, or a region of it. @internal */
  readClaimed(into: Memory, remoteAddr: bigint, rkey: number): Promise<void> {
    return this.#transfers.run(into, undefined, (sges) => ({ opcode: 'RDMA_READ', sges, remoteAddr, rkey }));
  }

  /** Writes into any announced memory of the peer. @internal */
  writeClaimed(data: Uint8Array, remoteAddr: bigint, rkey: number): Promise<void> {
    return this.#transfers.run(data, undefined, (sges) => ({ opcode: 'RDMA_WRITE', sges, remoteAddr, rkey }));
  }

  /** The next message, as a view, for the owner of the messages. @internal */
  nextMessage(): Promise<Message> {
    return this.#receive({ view: true });
  }

  /**
   * Registered memory for the library itself; the caller returns it to the scratch memory of the device after `close`.
   * @internal
   */
  registerScratch(bytes: number, access: number = Access.LOCAL_WRITE): Promise<MemoryRegion> {
    return this.#parts.pd.regMr(this.device.scratch.take(bytes), access);
  }

  /**
   * Writes into the peer's memory at `offset` of the region it opened; its CPU takes no part. Do not change `data`
   * before the promise settles. If the wait ends early, the bytes may still be written: do not change `data` before the
   * error's `released` has resolved.
   */
  async write(data: Memory, offset = 0, options?: WaitOptions): Promise<void> {
    checkMemory(data);
    const deadline = WaitDeadline.of('write', options, this.device.clock);
    const target = targetIn(this.remote, offset, data.length);
    await this.#transfers.run(data, deadline, (sges) => ({ opcode: 'RDMA_WRITE', sges, ...target }));
  }

  /**
   * Reads the peer's memory from `offset` of the region that it opened. A number reads that many bytes into a new
   * buffer; a buffer `into` is filled. Resolves to the bytes. With every engine, registered memory and memory of
   * `device.allocate` are filled in place, without a copy. When the wait ends early, the NIC may write into `into`
   * until the error's `released` has resolved.
   */
  async read(lengthOrInto: number | Memory, offset = 0, options?: WaitOptions): Promise<Buffer> {
    const deadline = WaitDeadline.of('read', options, this.device.clock);
    const isLength = typeof lengthOrInto === 'number';
    if (!isLength) checkMemory(lengthOrInto);
    const target = targetIn(this.remote, offset, isLength ? lengthOrInto : lengthOrInto.length);
    const into = isLength ? this.device.allocateLocal(lengthOrInto) : lengthOrInto;
    await this.#transfers.run(into, deadline, (sges) => ({ opcode: 'RDMA_READ', sges, ...target }));
    return bytesOf(into);
  }

  /**
   * Adds to the 64-bit number at `offset` (a multiple of 8) of the peer's region, modulo 2^64; resolves to the previous
   * value. `add` is from -2^63 to 2^64 - 1. When the wait ends early the operation may be executed all the same.
   */
  async fetchAdd(offset: number, add: bigint, options?: WaitOptions): Promise<bigint> {
    const addend = checkBigInt('add', add, -(2n ** 63n));
    return this.#atomic('fetchAdd', offset, options, (sges, target) => ({
      opcode: 'ATOMIC_FETCH_AND_ADD',
      add: BigInt.asUintN(64, addend),
      sges,
      ...target,
    }));
  }

  /**
   * Stores `desired` if the number there equals `expected`; resolves to the previous value. When the wait ends early:
   * as {@link fetchAdd}.
   */
  async compareSwap(offset: number, expected: bigint, desired: bigint, options?: WaitOptions): Promise<bigint> {
    checkBigInt('expected', expected, 0n);
    checkBigInt('desired', desired, 0n);
    return this.#atomic('compareSwap', offset, options, (sges, target) => ({
      opcode: 'ATOMIC_CMP_AND_SWP',
      compare: expected,
      swap: desired,
      sges,
      ...target,
    }));
  }

  async #atomic(
    call: string,
    offset: number,
    options: WaitOptions | undefined,
    operation: (sges: Elements, target: RemoteTarget) => Operation,
  ): Promise<bigint> {
    const deadline = WaitDeadline.of(call, options, this.device.clock);
    const target = atomicTargetIn(this.remote, offset);
    const result = this.device.allocateLocal(ATOMIC_BYTES);
    await this.#transfers.run(result, deadline, (sges) => operation(sges, target));
    return result.readBigUInt64LE();
  }

  #onSendDone(wc: WorkCompletion): void {
    if (wc.status !== 0) this.#fail(wc);
    this.#operations.onCompletion(wc);
  }

  #onReceive(wc: WorkCompletion): void {
    if (wc.statusName === 'WR_FLUSH_ERR') void this.#onFlushedReceive(wc);
    else if (wc.status !== 0) this.#fail(wc);
    else this.#inbox.onReceive(wc);
  }

  /** A flush has another cause: if RDMA CM reports the end of the connection, the report follows. */
  async #onFlushedReceive(wc: WorkCompletion): Promise<void> {
    await this.peerClosed({ timeoutMs: FLUSH_GRACE_MS }).catch(() => {});
    if (!this.#isLeft) this.#fail(wc);
  }

  /** Nothing on the queue pair would report that the peer is gone. */
  async #watchPeer(): Promise<void> {
    await this.#control.ended;
    if (this.isClosed) return;
    // Messages that were acknowledged before the peer left are queued, and may not be polled yet.
    for (let wc = this.#parts.recvCq.pollOne(); wc !== undefined; wc = this.#parts.recvCq.pollOne())
      this.#onReceive(wc);
    this.#isLeft = true;
    this.#isLeftInOrder = this.#failure === undefined;
    this.#inbox.fail(leftByPeer());
  }

  #fail(wc: WorkCompletion): void {
    if (this.#failure !== undefined || this.isClosed) return;
    this.#end(this.#errorOf(wc));
    void this.#control.close();
  }

  #errorOf(wc: WorkCompletion): RoceError {
    const peerIsGone = !this.#control.isOpen;
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
    const first = this.#failure ?? error;
    this.#inbox.fail(first);
    this.#operations.fail(first);
  }

  #lose(error: RoceError): void {
    this.#end(error);
    this.#operations.abandon();
  }

  /**
   * Every message from the peer until either side closes the connection or the peer is gone, even if later sends fail:
   * `for await (const message of connection)` does the same without options. They apply to the wait for each message.
   * A failure before the end throws, and so do ERR_ROCE_ABORTED and ERR_ROCE_TIMEOUT: no message is lost then.
   */
  messages(options?: ReceiveOptions): AsyncGenerator<Message, void, undefined> {
    WaitDeadline.check('messages', options, RECEIVE_OPTIONS);
    ifGiven(options?.view, (value) => checkBoolean('view', value));
    return this.#messages(options);
  }

  /** The same as {@link messages} without options. */
  [Symbol.asyncIterator](): AsyncGenerator<Message, void, undefined> {
    return this.#messages();
  }

  async *#messages(options?: ReceiveOptions): AsyncGenerator<Message, void, undefined> {
    while (!this.isClosed) {
      try {
        yield await this.receive(options);
      } catch (error) {
        if (this.isClosed || this.#isLeftInOrder) return;
        throw error;
      }
    }
  }

  /**
   * Resolves when the peer has closed its end, or is gone; at once when that is so already. Rejects with
   * ERR_ROCE_ABORTED or ERR_ROCE_TIMEOUT as the options say.
   */
  async peerClosed(options?: WaitOptions): Promise<void> {
    const deadline = WaitDeadline.of('peerClosed', options, this.device.clock);
    await waitForEvent(deadline, this.#control.ended);
  }

  /**
   * Ends the connection on this side; the peer's next operation fails. Messages of the peer that the program could
   * receive are acknowledged first.
   */
  protected override async release(): Promise<void> {
    this.#end(closedHere());
    this.#operations.abandon();
    await this.qp.settle(); // Before the peer learns of the end, which flushes its sent messages.
    await this.#control.close();
    await this.#parts.pd.close();
    await this.#parts.sendCq.close();
    await this.#parts.recvCq.close();
    const isFree = this.#inbox.close();
    if (isFree) this.device.scratch.give(this.#parts.receivePool.bytes);
    this.#onClosed();
  }
}

function checkBigInt(name: string, value: bigint, min: bigint): bigint {
  checkKind(name, value, typeof value === 'bigint', 'a bigint, such as 1n');
  if (value >= min && value < 2n ** 64n) return value;
  const hint = min === 0n ? 'it must fit 64 bits without sign' : 'it must fit 64 bits';
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `${name} is ${value}`, hint);
}

function leftByPeer(): RoceError {
  return new RoceError('ERR_ROCE_CLOSED', 'the peer has closed the connection');
}

function closedHere(): RoceError {
  return new RoceError('ERR_ROCE_CLOSED', 'the connection is closed');
}
