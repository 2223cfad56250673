/**
 * sU-RDMA (Azure storage paper §4.1): a reliable, ordered stream of bytes in both directions over one RC queue pair, in three modes by the size
 * of what is written.
 *
 *     small    copied into a SEND
 *     medium   RDMA WRITE into a slot of the receiver, SEND "write done" right behind it on the same queue pair
 *     large    SEND with a descriptor; the receiver READs when it can take the data, SEND "read done"
 *
 * Everything has a CRC-32C and is checked before it is delivered. One chunk a direction is under way at a time: what another connection
 * wants to send to the same host waits for at most that much. Chunks are delivered as views of registered memory; receives, slots and
 * buffers go back to the peer's account when the application has released them, so that a slow reader stops its writer and nothing else.
 *
 * A READ whose data is not what was checked is asked for again, three times; small and medium data has no second copy, and ends the
 * connection, as does everything that a peer of this version does not send.
 */

import { crc32c } from '../../core/crc32c.js';
import { RoceError } from '../../core/errors.js';
import { Access } from '../../verbs/access.js';
import type { MemoryRegion } from '../../verbs/memory-region.js';
import type { Lease } from '../pool/buffer-pool.js';
import type { SkDescriptor } from '../sk/request.js';
import {
  type AbortReason,
  decodeAbort,
  decodeLimits,
  decodePlace,
  decodeReadStatus,
  encodeAbort,
  encodeLimits,
  encodePlace,
  encodeReadStatus,
  type ReadStatus,
  type SuLimits,
} from './bodies.js';
import { SU_HEADER_BYTES, SU_MORE, type SuHeader } from './header.js';
import { MessagePort, type SuReceived } from './message-port.js';
import { OwnSlots, PeerSlots } from './slot-ring.js';
import { SU_RECEIVE_BYTES, type SuOptions, type SuParts } from './su-parts.js';

/** A piece of the stream. Its bytes are valid until `release`, which lets the peer send more; safe to call twice. */
export interface SuChunk {
  readonly bytes: Uint8Array;
  /** The last piece of what the peer wrote at once. */
  readonly endsMessage: boolean;
  release(): void;
}

const KIB = 1024;
const DEFAULTS = {
  smallBytesMax: SU_RECEIVE_BYTES - SU_HEADER_BYTES,
  slotBytes: 64 * KIB,
  slots: 8,
  chunkBytes: 64 * KIB,
  idleNs: 1e9,
  silenceNs: 3e9,
};
/** The explicit grant waits so long for a message that would carry it. */
const GRANT_DELAY_NS = 200e3;
/** A READ of a chunk is cut to this, so that several are under way. */
const READ_BYTES_MAX = 256 * KIB;
/** Large chunks the application may hold; the next is read when one has been released. */
const LARGE_HELD_MAX = 2;
const MISMATCHES_MAX = 3;

export class SuConnection {
  onChunk: (chunk: SuChunk) => void = ({ release }) => release();
  /** The peer writes nothing more. */
  onEnd: () => void = () => {};
  /** Called once, when the connection ends otherwise than by `close`. */
  onFailure: (error: Error) => void = () => {};
  readonly counters = { small: 0, medium: 0, large: 0, grants: 0, crcMismatches: 0 };
  /** Resolves when both sides know each other's limits. Rejects when that fails. */
  readonly ready: Promise<void>;
  readonly #parts: SuParts;
  readonly #port: MessagePort;
  readonly #limits: typeof DEFAULTS;
  readonly #isClient: boolean;
  readonly #slotMemory: MemoryRegion;
  readonly #ownSlots: OwnSlots;
  #settleReady!: { readonly resolve: () => void; readonly reject: (error: Error) => void };
  #agreed: SuLimits | undefined;
  #peerSlots: PeerSlots | undefined;
  #peerSlotPlace: SkDescriptor | undefined;
  #slotFreed: () => void = () => {};
  /** Writes follow one another. */
  #writing: Promise<void> = Promise.resolve();
  #ended = false;
  #sentOff = 0;
  #receivedOff = 0;
  #readDone: ((status: ReadStatus) => void) | undefined;
  #drained: (() => void) | undefined;
  #largeHeld = 0;
  #largeReleased: () => void = () => {};
  #cancelGrant: (() => void) | undefined;
  #cancelWatch: (() => void) | undefined;
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
    this.ready = new Promise((resolve, reject) => {
      this.#settleReady = { resolve, reject };
    });
    this.ready.catch(() => {}); // Who writes hears of it there.
    port.slotLimit = () => this.#ownSlots.advertise();
    port.onMessage = (received) => this.#onMessage(received);
    port.onFailure = (error) => this.#onPortFailure(error);
  }

  /** Takes over a queue pair that can receive. It is closed with the connection, and so are its CQs; domain and pools are the caller's. */
  static async over(parts: SuParts, role: 'client' | 'server', options: SuOptions = {}): Promise<SuConnection> {
    const limits = { ...DEFAULTS, ...options };
    const slotMemory = await parts.pd.regMr(limits.slots * limits.slotBytes, Access.LOCAL_WRITE | Access.REMOTE_WRITE);
    const port = await MessagePort.over(parts);
    return new SuConnection(parts, port, slotMemory, limits, role === 'client');
  }

  /** Begins to speak; both sides call it when their queue pairs are connected. */
  start(): void {
    if (this.#isClient) this.#send('HELLO', encodeLimits(this.#limits));
    this.#watch();
  }

  /** Sizes in use; undefined before `ready`. */
  get agreed(): SuLimits | undefined {
    return this.#agreed;
  }

  /** Sends bytes. Resolves when they have reached the peer's memory, whether it has looked at them or not; until then they must not change. */
  write(data: Uint8Array): Promise<void> {
    if (this.#ended) {
      return Promise.reject(new RoceError('ERR_ROCE_INVALID_STATE', 'the stream has been ended on this side'));
    }
    const written = this.#writing.then(() => this.#writeMessage(data));
    this.#writing = written.catch(() => {});
    return written;
  }

  /** Writes nothing more. Resolves when the peer has everything. */
  async end(): Promise<void> {
    this.#ended = true;
    await this.#writing;
    const drained = new Promise<void>((resolve) => {
      this.#drained = resolve;
    });
    await this.#port.send({ type: 'DRAIN', streamOff: this.#sentOff });
    await drained;
  }

  /** Ends the connection and tells the peer why. */
  async abort(reason: AbortReason, text: string): Promise<void> {
    await this.#tellAbort(reason, text);
    await this.close();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#cancelGrant?.();
    this.#cancelWatch?.();
    const error = new RoceError('ERR_ROCE_CLOSED', 'the connection is closed');
    this.#settleReady.reject(error);
    await this.#port.close();
    this.#wakeAll();
    await this.#slotMemory.close();
  }

  /** Whoever waits looks again, and finds the connection closed. */
  #wakeAll(): void {
    this.#slotFreed();
    this.#largeReleased();
    this.#readDone?.('ok');
    this.#drained?.();
  }

  // ---- sending

  async #writeMessage(data: Uint8Array): Promise<void> {
    await this.ready;
    const { smallBytesMax, slotBytes, chunkBytes } = this.#agreed!;
    if (data.length <= smallBytesMax) await this.#writeSmall(data);
    else if (data.length <= slotBytes) await this.#writeMedium(data);
    else {
      for (let at = 0; at < data.length; at += chunkBytes) {
        const end = Math.min(at + chunkBytes, data.length);
        await this.#writeLarge(data.subarray(at, end), end < data.length);
      }
    }
  }

  #chunkFields(data: Uint8Array) {
    const streamOff = this.#sentOff;
    this.#sentOff += data.length;
    return { streamOff, dataLen: data.length, dataCrc: crc32c(data) };
  }

  async #writeSmall(data: Uint8Array): Promise<void> {
    const lease = await this.#borrow('local', SU_HEADER_BYTES + data.length);
    try {
      lease.bytes.set(data, SU_HEADER_BYTES);
      this.counters.small++;
      await this.#port.send({ type: 'DATA', ...this.#chunkFields(data), lease });
    } finally {
      lease.release();
    }
  }

  async #writeMedium(data: Uint8Array): Promise<void> {
    const lease = await this.#borrow('local', data.length);
    try {
      lease.bytes.set(data);
      while (!this.#peerSlots!.available && this.#port.isOpen) {
        await new Promise<void>((resolve) => {
          this.#slotFreed = resolve;
        });
      }
      const slot = this.#peerSlots!.take();
      const { addr, rkey } = this.#peerSlotPlace!;
      const remoteAddr = addr + BigInt(slot * this.#agreed!.slotBytes);
      const sges = [lease.slab.sge(lease.offset, lease.length)];
      this.counters.medium++;
      await this.#port.send({
        type: 'WRITE_DONE',
        ...this.#chunkFields(data),
        before: { opcode: 'RDMA_WRITE', sges, remoteAddr, rkey, signaled: false },
      });
    } finally {
      lease.release();
    }
  }

  async #writeLarge(data: Uint8Array, more: boolean): Promise<void> {
    const lease = await this.#borrow('exposed', data.length);
    try {
      lease.bytes.set(data);
      const fields = this.#chunkFields(data);
      const { slab, offset, length } = lease;
      const body = encodePlace({ addr: slab.addr + BigInt(offset), rkey: slab.rkey, length });
      this.counters.large++;
      for (let attempt = 1; ; attempt++) {
        const done = new Promise<ReadStatus>((resolve) => {
          this.#readDone = resolve;
        });
        await this.#port.send({ type: 'READ_REQ', flags: more ? SU_MORE : 0, ...fields, body });
        const status = await done;
        this.#readDone = undefined;
        if (!this.#port.isOpen) throw new RoceError('ERR_ROCE_CLOSED', 'the connection ended before the data was read');
        if (status === 'ok') return;
        if (attempt === MISMATCHES_MAX) {
          const why = `the peer read other data than was written, ${attempt} times`;
          void this.#giveUp('crc', why);
          throw new RoceError('ERR_ROCE_CONNECT', why);
        }
      }
    } finally {
      lease.release();
    }
  }

  /** Memory from the pool; a pool that has none ends the connection, for the stream cannot go on without it. */
  async #borrow(pool: 'local' | 'exposed', bytes: number): Promise<Lease<MemoryRegion>> {
    try {
      return await this.#parts.pools[pool].acquire(bytes);
    } catch (error) {
      void this.#giveUp('no_buffers', (error as Error).message);
      throw error;
    }
  }

  #send(
    type: 'HELLO' | 'HELLO_ACK' | 'SLOTS' | 'READ_DONE' | 'PING' | 'PONG' | 'DRAIN_ACK' | 'CREDIT',
    body?: Uint8Array,
  ) {
    // What cannot be sent any more has been reported by the port.
    this.#port.send({ type, ...(body !== undefined && { body }) }).catch(() => {});
  }

  // ---- receiving

  #onMessage(received: SuReceived): void {
    const { header } = received;
    const slotsWrong = this.#peerSlots?.onLimit(header.slotLimit) === false;
    this.#slotFreed();
    const wrong = slotsWrong ? 'impossible slot limit' : this.#take(received);
    if (wrong !== undefined) this.#refuse(wrong);
    this.#grant();
  }

  /** Acts on a message; says what is wrong with it. All but DATA give their receive back at once. */
  #take(received: SuReceived): string | undefined {
    const { header, body } = received;
    switch (header.type) {
      case 'DATA':
        return this.#onData(received);
      case 'HELLO':
      case 'HELLO_ACK': {
        const limits = decodeLimits(body);
        received.release();
        return this.#onHello(header, limits);
      }
      case 'SLOTS': {
        const place = decodePlace(body);
        received.release();
        return this.#onSlots(header, place);
      }
      case 'READ_REQ': {
        const place = decodePlace(body);
        received.release();
        return this.#onReadRequest(header, place);
      }
      case 'READ_DONE': {
        const status = decodeReadStatus(body);
        received.release();
        if (status === undefined || this.#readDone === undefined) return 'a read that was not asked for is done';
        this.#readDone(status);
        return undefined;
      }
      case 'ABORT': {
        const abort = decodeAbort(body);
        this.#port.fail(
          new RoceError('ERR_ROCE_CONNECT', `the peer gave up: ${abort?.reason ?? '?'}: ${abort?.text ?? ''}`),
        );
        return undefined;
      }
      default:
        received.release();
        return this.#onBare(header);
    }
  }

  /** Messages that are nothing but a header. */
  #onBare(header: SuHeader): string | undefined {
    switch (header.type) {
      case 'WRITE_DONE':
        return this.#onWriteDone(header);
      case 'PING':
        this.#send('PONG');
        return undefined;
      case 'DRAIN':
        if (header.streamOff !== this.#receivedOff) return 'the stream ends where it is not';
        this.#send('DRAIN_ACK');
        this.onEnd();
        return undefined;
      case 'DRAIN_ACK':
        this.#drained?.();
        return undefined;
      default:
        return undefined;
    }
  }

  #onHello({ type }: SuHeader, theirs: SuLimits | undefined): string | undefined {
    if (theirs === undefined || this.#agreed !== undefined || (type === 'HELLO') === this.#isClient)
      return 'a bad hello';
    const { smallBytesMax, slotBytes, chunkBytes } = this.#limits;
    this.#agreed = {
      smallBytesMax: Math.min(smallBytesMax, theirs.smallBytesMax),
      slotBytes: Math.min(slotBytes, theirs.slotBytes),
      slots: theirs.slots,
      chunkBytes: Math.min(chunkBytes, theirs.chunkBytes),
    };
    if (!this.#isClient) this.#send('HELLO_ACK', encodeLimits(this.#limits));
    const { addr, rkey, length } = this.#slotMemory;
    this.#send('SLOTS', encodePlace({ addr, rkey, length }));
    return undefined;
  }

  #onSlots({ slotLimit }: SuHeader, place: SkDescriptor | undefined): string | undefined {
    const agreed = this.#agreed;
    if (place === undefined || agreed === undefined || this.#peerSlots !== undefined) return 'bad slots';
    if (place.length < agreed.slots * agreed.slotBytes) return 'slots that are too small';
    this.#peerSlotPlace = place;
    this.#peerSlots = new PeerSlots(agreed.slots);
    if (!this.#peerSlots.onLimit(slotLimit)) return 'impossible slot limit';
    this.#settleReady.resolve();
    return undefined;
  }

  #onData({ header, body, release }: SuReceived): string | undefined {
    if (body.length !== header.dataLen) return 'data of another length';
    if (!this.#isNext(header)) return 'data from elsewhere in the stream';
    if (crc32c(body) !== header.dataCrc) return this.#onMismatch();
    this.#deliver(header, body, release);
    return undefined;
  }

  #onWriteDone(header: SuHeader): string | undefined {
    const slot = this.#ownSlots.onWritten();
    const { slotBytes } = this.#agreed ?? this.#limits;
    if (slot === undefined || header.dataLen > slotBytes) return 'a write where no slot was free';
    if (!this.#isNext(header)) return 'data from elsewhere in the stream';
    const begin = slot * slotBytes;
    const bytes = this.#slotMemory.bytes.subarray(begin, begin + header.dataLen);
    if (crc32c(bytes) !== header.dataCrc) return this.#onMismatch();
    this.#deliver(header, bytes, () => this.#ownSlots.release(slot));
    return undefined;
  }

  #onReadRequest(header: SuHeader, place: SkDescriptor | undefined): string | undefined {
    const { chunkBytes } = this.#agreed ?? this.#limits;
    if (place === undefined || place.length !== header.dataLen || header.dataLen > chunkBytes || header.dataLen === 0) {
      return 'an impossible chunk';
    }
    if (header.streamOff !== this.#receivedOff) return 'data from elsewhere in the stream';
    // A connection that ends while it reads has reported that already.
    this.#readChunk(header, place).catch(() => {});
    return undefined;
  }

  async #readChunk(header: SuHeader, { addr, rkey, length }: SkDescriptor): Promise<void> {
    while (this.#largeHeld >= LARGE_HELD_MAX && this.#port.isOpen) {
      await new Promise<void>((resolve) => {
        this.#largeReleased = resolve;
      });
    }
    const lease = await this.#borrow('local', length);
    try {
      const reads: Promise<void>[] = [];
      for (let at = 0; at < length; at += READ_BYTES_MAX) {
        const sges = [lease.slab.sge(lease.offset + at, Math.min(READ_BYTES_MAX, length - at))];
        reads.push(this.#port.read({ opcode: 'RDMA_READ', sges, remoteAddr: addr + BigInt(at), rkey }));
      }
      // All of them have ended before the memory goes anywhere.
      for (const outcome of await Promise.allSettled(reads)) if (outcome.status === 'rejected') throw outcome.reason;
    } catch (error) {
      lease.release();
      throw error;
    }
    const intact = crc32c(lease.bytes) === header.dataCrc;
    if (intact && this.#isNext(header)) {
      this.#largeHeld++;
      this.#deliver(header, lease.bytes, () => {
        lease.release();
        this.#largeHeld--;
        this.#largeReleased();
      });
    } else {
      this.counters.crcMismatches++;
      lease.release();
    }
    this.#send('READ_DONE', encodeReadStatus(intact ? 'ok' : 'crc_mismatch'));
  }

  #isNext({ streamOff, dataLen }: SuHeader): boolean {
    if (streamOff !== this.#receivedOff) return false;
    this.#receivedOff += dataLen;
    return true;
  }

  #deliver({ flags }: SuHeader, bytes: Uint8Array, free: () => void): void {
    let held = true;
    this.onChunk({
      bytes,
      endsMessage: (flags & SU_MORE) === 0,
      release: () => {
        if (!held) return;
        held = false;
        free();
        this.#grant();
      },
    });
  }

  #onMismatch(): string {
    this.counters.crcMismatches++;
    return 'data that is not what was checked';
  }

  // ---- looking after the connection

  /** Tells the peer what is free again: at once when it is much, else when no message has carried it for a while. */
  #grant(): void {
    const { credits } = this.#port;
    if (!this.#port.isOpen) return;
    if (credits.grantDue) this.#grantNow();
    else if ((credits.grantWanted || this.#ownSlots.grantWanted) && this.#cancelGrant === undefined) {
      const { clock } = this.#parts;
      this.#cancelGrant = clock.wakeAt(clock.nowNs() + GRANT_DELAY_NS, () => {
        this.#cancelGrant = undefined;
        if (credits.grantWanted || this.#ownSlots.grantWanted) this.#grantNow();
      });
    }
  }

  #grantNow(): void {
    if (this.#port.waiting > 0) this.#port.pump(); // What waits carries it, if it may go.
    const { credits } = this.#port;
    if (!credits.grantDue && !credits.grantWanted && !this.#ownSlots.grantWanted) return;
    if (!credits.allows('control')) return;
    this.counters.grants++;
    this.#send('CREDIT');
  }

  #watch(): void {
    const { clock } = this.#parts;
    const { idleNs, silenceNs } = this.#limits;
    this.#cancelWatch = clock.wakeAt(clock.nowNs() + idleNs, () => {
      if (!this.#port.isOpen) return;
      const silentNs = clock.nowNs() - this.#port.lastHeardNs;
      if (silentNs >= silenceNs) {
        void this.#giveUp('silent', `nothing was heard for ${silenceNs / 1e9} s`);
        return;
      }
      if (silentNs >= idleNs && this.#agreed !== undefined && this.#port.waiting === 0) this.#send('PING');
      this.#watch();
    });
  }

  #refuse(why: string): void {
    void this.#giveUp(why.startsWith('data that') ? 'crc' : 'protocol', why);
  }

  /** This side cannot go on: the peer is told, if it can be. */
  async #giveUp(reason: AbortReason, text: string): Promise<void> {
    if (!this.#port.isOpen) return;
    const error = new RoceError('ERR_ROCE_CONNECT', `the connection was given up: ${text}`);
    await this.#tellAbort(reason, text);
    this.#port.fail(error);
  }

  /** At most as long as a round trip may take: the peer hears of it one way or another. */
  async #tellAbort(reason: AbortReason, text: string): Promise<void> {
    if (!this.#port.isOpen) return;
    const { clock } = this.#parts;
    const told = this.#port.send({ type: 'ABORT', body: encodeAbort(reason, text) }).catch(() => {});
    const late = new Promise<void>((resolve) => clock.wakeAt(clock.nowNs() + ABORT_NS, resolve));
    await Promise.race([told, late]);
  }

  #onPortFailure(error: Error): void {
    if (this.#closing !== undefined) return;
    this.#settleReady.reject(error);
    this.onFailure(error);
    void this.close();
  }
}

const ABORT_NS = 100e6;
