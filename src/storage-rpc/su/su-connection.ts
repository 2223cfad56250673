/**
 * sU-RDMA (Azure storage paper §4.1): a reliable, ordered stream of bytes in both directions over one RC queue pair, in
 * three modes by the size of a write.
 *
 *     small    copied into a SEND
 *     medium   RDMA WRITE into a slot of the receiver, SEND "write done" right after it on the same queue pair
 *     large    SEND with a descriptor; the receiver READs when it can take the data, SEND "read done"
 *
 * All data has a CRC-32C and is checked before it is delivered. One chunk per direction is in flight at a time: other
 * connections to the same host wait for at most that much. Chunks are delivered as views of registered memory;
 * receives, slots and buffers are returned to the peer when the application has released them, so that a slow reader
 * stops only its writer.
 *
 * A READ whose data does not match its checksum is repeated up to three times. Small and medium data has no second
 * copy: an error ends the connection, as does any message that a peer of this version does not send.
 */

import { withDefaults } from '../../core/defaults.js';
import { RoceError } from '../../core/errors.js';
import { Access } from '../../verbs/access.js';
import type { MemoryRegion } from '../../verbs/memory-region.js';
import { ConnectionWatch } from '../link/connection-watch.js';
import type { RemoteBufferDescriptor } from '../link/remote-buffer-descriptor.js';
import { PIECE_BYTES_MAX } from '../pool/buffer-pool.js';
import {
  type AbortReason,
  decodeAbort,
  decodeLimits,
  decodeReadStatus,
  decodeRemoteBuffer,
  encodeAbort,
  encodeLimits,
  encodeRemoteBuffer,
  type SuLimits,
} from './bodies.js';
import { SU_HEADER_BYTES, type SuHeader } from './header.js';
import { MessagePort, type SuMessage, type SuReceived } from './message-port.js';
import { OwnSlots, PeerSlots } from './slot-ring.js';
import { SU_RECEIVE_BYTES, type SuOptions, type SuParts } from './su-parts.js';
import { type SuChunk, SuReceiver } from './su-receiver.js';
import { type SendTerms, SuSender } from './su-sender.js';

const KIB = 1024;
const DEFAULTS = {
  smallBytesMax: SU_RECEIVE_BYTES - SU_HEADER_BYTES,
  slotBytes: 64 * KIB,
  slots: 8,
  chunkBytes: 64 * KIB,
  idleNs: 1e9,
  silenceNs: 3e9,
};
const SLOTS_MAX = 1024;
const GRANT_DELAY_NS = 200e3;
/** How long the closing message waits for its acknowledgement: the peer also notices the end without it. */
const FAREWELL_TIMEOUT_NS = 100e6;

/** One connection: a stream to write and a stream to read. */
export class SuConnection {
  /** Called once if the connection ends in another way than by `close` or `abort`. */
  onFailure: (error: Error) => void = () => {};
  readonly #parts: SuParts;
  readonly #port: MessagePort;
  readonly #limits: typeof DEFAULTS;
  readonly #isClient: boolean;
  readonly #slotMemory: MemoryRegion;
  readonly #ownSlots: OwnSlots;
  readonly #sender: SuSender;
  readonly #receiver: SuReceiver;
  readonly #terms: Promise<SendTerms>;
  #settleTerms!: { readonly resolve: (terms: SendTerms) => void; readonly reject: (error: Error) => void };
  #agreed: SuLimits | undefined;
  #peerSlots: PeerSlots | undefined;
  #ownEnd = false;
  #peerEnd = false;
  #onEnd: () => void = () => {};
  #farewell: Promise<void> = Promise.resolve();
  #grants = 0;
  #cancelGrant: (() => void) | undefined;
  #watch: ConnectionWatch | undefined;
  #closing: Promise<void> | undefined;

  private constructor(
    parts: SuParts,
    port: MessagePort,
    slotMemory: MemoryRegion,
    limits: typeof DEFAULTS,
    isClient: boolean,
  ) {
    this.#parts = parts;
    this.#port = port;
    this.#slotMemory = slotMemory;
    this.#limits = limits;
    this.#isClient = isClient;
    this.#ownSlots = new OwnSlots(limits.slots);
    this.#terms = new Promise((resolve, reject) => {
      this.#settleTerms = { resolve, reject };
    });
    this.#terms.catch(() => {});
    const giveUp = (reason: AbortReason, text: string) => void this.#giveUp(reason, text);
    const memory = { slots: this.#ownSlots, region: slotMemory };
    this.#sender = new SuSender(port, parts.pools, this.#terms, giveUp);
    this.#receiver = new SuReceiver(port, parts.pools, memory, giveUp, () => this.#grant());
    port.slotLimit = () => this.#ownSlots.advertise();
    port.onMessage = (received) => this.#onMessage(received);
    port.onFailure = (error) => this.#onPortFailure(error);
  }

  /**
   * Takes over a queue pair that can receive. It is closed with the connection, and so are its CQs; domain and pools
   * are the caller's.
   */
  static async over(parts: SuParts, role: 'client' | 'server', options: SuOptions = {}): Promise<SuConnection> {
    const limits = withDefaults(DEFAULTS, options);
    checkLimit('smallBytesMax', limits.smallBytesMax, DEFAULTS.smallBytesMax);
    checkLimit('slotBytes', limits.slotBytes, PIECE_BYTES_MAX);
    checkLimit('chunkBytes', limits.chunkBytes, PIECE_BYTES_MAX);
    checkLimit('slots', limits.slots, SLOTS_MAX);
    const slotMemory = await parts.pd.regMr(limits.slots * limits.slotBytes, Access.LOCAL_WRITE | Access.REMOTE_WRITE);
    const port = await MessagePort.over(parts);
    return new SuConnection(parts, port, slotMemory, limits, role === 'client');
  }

  /** Starts the protocol; both sides call it when their queue pairs are connected. */
  start(): void {
    if (this.#isClient) this.#tell({ type: 'HELLO', body: encodeLimits(this.#limits) });
    this.#watch = this.#watchOver();
  }

  /** Resolves when both sides know each other's limits; rejects when that fails. */
  get ready(): Promise<void> {
    return this.#terms.then(() => {});
  }

  /** Chunks sent by mode, grants sent in their own messages, and chunks received with a wrong checksum. */
  get counters() {
    return {
      ...this.#sender.counters,
      /** Messages that did nothing but grant credits. */
      grants: this.#grants,
      /** Chunks whose CRC did not match. */
      crcMismatches: this.#receiver.crcMismatches,
    };
  }

  /** Called when the peer writes nothing more, all that it wrote having been handed on. */
  set onEnd(tell: () => void) {
    this.#onEnd = tell;
    if (this.#peerEnd) tell();
  }

  /** Called with each chunk, in order; chunks that have already arrived are delivered at once. */
  set onChunk(take: (chunk: SuChunk) => void) {
    this.#receiver.onChunk = take;
  }

  /**
   * Sends bytes. Resolves when they have reached the peer's memory, whether the peer has read them or not; until then
   * they must not change. Rejects with ERR_ROCE_INVALID_STATE after {@link end}, ERR_ROCE_CLOSED after {@link close},
   * and with the error that ended the connection.
   */
  write(data: Uint8Array): Promise<void> {
    return this.#sender.write(data);
  }

  /** Ends the stream in this direction. Resolves when the peer has all data. */
  async end(): Promise<void> {
    await this.#sender.end();
    this.#ownEnd = true;
  }

  /** Ends the connection for a reason that only its owner can know: the peer's process is gone. */
  fail(error: Error): void {
    this.#port.fail(error);
  }

  /** Ends the connection and sends the peer the reason. */
  async abort(reason: AbortReason, text: string): Promise<void> {
    await this.#tellAbort(reason, text);
    await this.close();
  }

  /** Ends the connection at once and releases all resources. The peer sees a failure unless both sides had ended. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#cancelGrant?.();
    this.#watch?.stop();
    this.#settleTerms.reject(new RoceError('ERR_ROCE_CLOSED', 'the connection is closed'));
    if (this.#port.isOpen) await this.#atMost(FAREWELL_TIMEOUT_NS, this.#farewell);
    await this.#port.close();
    this.#sender.close();
    this.#receiver.close();
    await this.#slotMemory.close();
    this.#parts.onClosed?.();
  }

  #tell(message: SuMessage): void {
    this.#port.send(message).catch(() => {});
  }

  #onMessage(received: SuReceived): void {
    const { header } = received;
    this.#watch?.onHeard();
    if (this.#peerSlots?.onLimit(header.slotLimit) === false) this.#refuse('an impossible slot limit');
    else if (header.type === 'DATA') this.#receiver.onData(received);
    else {
      const body = Buffer.from(received.body);
      received.release();
      this.#onControl(header, body);
    }
    this.#sender.onSlots();
    this.#grant();
  }

  #onControl(header: SuHeader, body: Buffer): void {
    switch (header.type) {
      case 'HELLO':
      case 'HELLO_ACK':
        this.#onHello(header, decodeLimits(body));
        break;
      case 'SLOTS':
        this.#onSlots(header, decodeRemoteBuffer(body));
        break;
      case 'WRITE_DONE':
        this.#receiver.onWriteDone(header, this.#agreed ?? this.#limits);
        break;
      case 'READ_REQ':
        this.#receiver.onReadRequest(header, decodeRemoteBuffer(body), this.#agreed ?? this.#limits);
        break;
      case 'READ_DONE': {
        const status = decodeReadStatus(body);
        if (status === undefined || !this.#sender.onReadDone(status)) this.#refuse('a READ_DONE without a request');
        break;
      }
      case 'PING':
        this.#tell({ type: 'PONG' });
        break;
      case 'DRAIN':
        this.#onDrain(header);
        break;
      case 'DRAIN_ACK':
        this.#sender.onDrainAck();
        break;
      case 'ABORT':
        this.#onAbort(body);
        break;
      default:
    }
  }

  #onHello({ type }: SuHeader, theirs: SuLimits | undefined): void {
    if (theirs === undefined || this.#agreed !== undefined || (type === 'HELLO') === this.#isClient) {
      this.#refuse('a bad hello');
      return;
    }
    const { smallBytesMax, slotBytes, chunkBytes } = this.#limits;
    this.#agreed = {
      smallBytesMax: Math.min(smallBytesMax, theirs.smallBytesMax),
      slotBytes: Math.min(slotBytes, theirs.slotBytes),
      chunkBytes: Math.min(chunkBytes, theirs.chunkBytes),
      slots: theirs.slots,
    };
    if (!this.#isClient) this.#tell({ type: 'HELLO_ACK', body: encodeLimits(this.#limits) });
    const { addr, rkey, length } = this.#slotMemory;
    this.#tell({ type: 'SLOTS', body: encodeRemoteBuffer({ addr, rkey, length }) });
  }

  #onSlots({ slotLimit }: SuHeader, slotPlace: RemoteBufferDescriptor | undefined): void {
    const limits = this.#agreed;
    const isExpected = slotPlace !== undefined && limits !== undefined && this.#peerSlots === undefined;
    if (!isExpected || slotPlace.length < limits.slots * limits.slotBytes) {
      this.#refuse('bad slots');
      return;
    }
    const peerSlots = new PeerSlots(limits.slots);
    this.#peerSlots = peerSlots;
    if (peerSlots.onLimit(slotLimit)) this.#settleTerms.resolve({ limits, peerSlots, slotPlace });
    else this.#refuse('an impossible slot limit');
  }

  #onDrain({ streamOff }: SuHeader): void {
    if (streamOff !== this.#receiver.receivedOff) {
      this.#refuse('the end of the stream is at the wrong offset');
      return;
    }
    this.#peerEnd = true;
    this.#farewell = this.#port.send({ type: 'DRAIN_ACK' }).catch(() => {});
    this.#onEnd();
  }

  #onAbort(body: Buffer): void {
    const { reason, text } = decodeAbort(body) ?? { reason: 'protocol', text: '' };
    this.#port.fail(new RoceError('ERR_ROCE_CONNECT', `the peer gave up: ${reason}: ${text}`));
  }

  #grant(): void {
    if (!this.#port.isOpen) return;
    if (this.#port.credits.grantDue) this.#grantNow();
    else if (this.#grantWanted && this.#cancelGrant === undefined) {
      const { clock } = this.#parts;
      this.#cancelGrant = clock.wakeAt(clock.nowNs() + GRANT_DELAY_NS, () => {
        this.#cancelGrant = undefined;
        if (this.#grantWanted) this.#grantNow();
      });
    }
  }

  get #grantWanted(): boolean {
    return this.#port.credits.grantWanted || this.#ownSlots.grantWanted;
  }

  /** Without a credit it has to wait: the next message from the peer brings it here again. */
  #grantNow(): void {
    if (!this.#port.isOpen || this.#port.controlWaits || !this.#port.credits.allows('control')) return;
    this.#grants++;
    this.#tell({ type: 'CREDIT' });
  }

  #watchOver(): ConnectionWatch {
    const { idleNs, silenceNs } = this.#limits;
    return new ConnectionWatch({
      clock: this.#parts.clock,
      idleNs,
      silenceNs,
      look: () => !this.#port.isOpen,
      ask: () => {
        if (this.#agreed !== undefined) this.#tell({ type: 'PING' });
      },
      onSilent: () => void this.#giveUp('silent', `the peer was silent for ${silenceNs / 1e9} s`),
    });
  }

  #refuse(why: string): void {
    void this.#giveUp('protocol', why);
  }

  async #giveUp(reason: AbortReason, text: string): Promise<void> {
    await this.#tellAbort(reason, text);
    this.#port.fail(new RoceError('ERR_ROCE_CONNECT', `the connection was given up: ${text}`));
  }

  async #tellAbort(reason: AbortReason, text: string): Promise<void> {
    if (!this.#port.isOpen) return;
    const told = this.#port.send({ type: 'ABORT', body: encodeAbort(reason, text) }).catch(() => {});
    this.#port.stopReceiving();
    await this.#atMost(FAREWELL_TIMEOUT_NS, told);
  }

  async #atMost(ns: number, work: Promise<void>): Promise<void> {
    const { clock } = this.#parts;
    let cancel: () => void = () => {};
    const late = new Promise<void>((resolve) => {
      cancel = clock.wakeAt(clock.nowNs() + ns, resolve);
    });
    await Promise.race([work, late]);
    cancel();
  }

  #onPortFailure(error: Error): void {
    if (this.#closing !== undefined || (this.#ownEnd && this.#peerEnd)) return;
    this.#settleTerms.reject(error);
    this.onFailure(error);
    void this.close();
  }
}

function checkLimit(name: string, value: number, max: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= max) return;
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `${name} is ${value}`, `it must be 1 to ${max}`);
}
