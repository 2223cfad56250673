/**
 * A session at the client: the identity of requests, which outlives every connection. A request has a slot and the
 * slot's next sequence number until it is answered; when a connection is lost and the session is resumed over another,
 * of any transport, all unanswered requests are resent in the order of slots, with the same numbers, and the server
 * executes each at most once.
 *
 * If the server no longer knows the session (it restarted: another bootId), the slots are reset. Unanswered requests
 * may or may not have been executed; all requests of disks may be executed again, so they are resent.
 *
 * Bounds: SK_SLOTS_MAX requests and `inFlightBytesMax` bytes are in flight; more wait, `QUEUE_MAX` at most.
 */

import type { HostTransport } from '../../cm/rdma-fallback.js';
import type { Clock } from '../../core/clock.js';
import { RoceError } from '../../core/errors.js';
import type { RandomSource } from '../../core/random.js';
import { BlockDeviceError } from '../disk/block-device.js';
import { ConnectionWatch } from '../link/connection-watch.js';
import type { KeptSession } from '../session/reconnector.js';
import type { SkClientChannel, SkReply } from './channel.js';
import { type ClientSessionOptions, SESSION_DEFAULTS, type SessionLimits } from './client-session-options.js';
import { ABANDONED, arrivedIntact, ClientSlots, type PendingIo, type SkIo } from './client-slots.js';
import { checksOf, firstBadBlock, NO_CHECKS } from './data-checks.js';
import { ExpectedDisk } from './expected-disk.js';
import { resumeSession, sessionLow } from './handshake.js';
import { LatencyWindow } from './latency-window.js';
import { LeaseRequest } from './lease-request.js';
import { NotOwnerRedirect } from './not-owner-redirect.js';
import { decodePong } from './pong.js';
import { checkInlineWriteBytesMax, SK_FUA, SK_INLINE, SK_NO_SLOT, SK_SLOTS_MAX, type SkOp } from './request.js';
import { errnoOfStatus } from './response.js';
import type { ResumeResponse } from './resume.js';
import { type WriteVerifierCursor, WriteVerifierTracker } from './write-verifier-tracker.js';

/** Requests that may wait for a slot. */
const QUEUE_MAX = 4096;
/** Failures of data checks one after another that end a connection. */
const MISMATCHES_MAX = 3;
const SESSION_ID_BYTES = 16;
/** How often the client learns of checkpoints, at least. */
const PONG_NS = 1e9;
const CHANGES: ReadonlySet<SkOp> = new Set(['WRITE', 'TRIM', 'ZERO']);

export class ClientSession implements KeptSession<SkClientChannel> {
  readonly counters = { completed: 0, resent: 0, crcMismatches: 0, resumed: 0, serverRestarts: 0 };
  readonly latency = new LatencyWindow();
  /** Called when the connection has failed; its memory is open to the server until the channel has been closed. */
  onLost: (channel: SkClientChannel, error: Error) => void = () => {};
  readonly #clock: Clock;
  readonly #random: RandomSource;
  readonly #limits: SessionLimits;
  readonly durability: WriteVerifierTracker;
  readonly #cursor: WriteVerifierCursor;
  readonly #expected: ExpectedDisk;
  readonly #claim: LeaseRequest;
  readonly #slots = new ClientSlots();
  readonly #waiting: PendingIo[] = [];
  #sessionId: Uint8Array;
  #sessionLow: bigint;
  #epoch = 0;
  #server: ResumeResponse | undefined;
  #channel: SkClientChannel | undefined;
  #onDrained: (() => void) | undefined;
  #mismatches = 0;
  #diskBytes = 0;
  #isPinging = false;
  #pongNs = 0;
  readonly #onPong: Array<() => void> = [];
  #watch: ConnectionWatch | undefined;
  #ended: Error | undefined;
  #suspended: Error | undefined;

  constructor(options: ClientSessionOptions) {
    const { clock, random, durability = new WriteVerifierTracker(), expected = new ExpectedDisk(), ...rest } = options;
    const { claim = new LeaseRequest(random), ...limits } = rest;
    this.#clock = clock;
    this.#random = random;
    this.durability = durability;
    this.#cursor = durability.cursor();
    this.#expected = expected;
    this.#claim = claim;
    this.#limits = { ...SESSION_DEFAULTS, ...limits };
    checkInlineWriteBytesMax(this.#limits.inlineWriteBytesMax);
    this.#sessionId = this.#newId();
    this.#sessionLow = sessionLow(this.#sessionId);
  }

  get server(): ResumeResponse | undefined {
    return this.#server;
  }

  get transport(): HostTransport | undefined {
    return this.#channel?.transport;
  }

  get isEnded(): boolean {
    return this.#ended !== undefined;
  }

  get diskBytes(): number {
    return this.#diskBytes;
  }

  async askSize(timeoutNs: number): Promise<void> {
    if (this.#channel === undefined) return;
    let cancel: () => void = () => {};
    await new Promise<void>((resolve) => {
      cancel = this.#clock.wakeAt(this.#clock.nowNs() + timeoutNs, resolve);
      this.#onPong.push(resolve);
      this.#ping();
    });
    cancel();
  }

  get outstanding(): number {
    return this.#slots.used;
  }

  /**
   * Rejects with a BlockDeviceError: the disk's own, EIO when the session is lost or suspended, ENOMEM when too many
   * wait, ESHUTDOWN after `end`.
   */
  submit(io: SkIo): Promise<void> {
    const refusal = this.#ended ?? this.#suspended;
    if (refusal !== undefined) return Promise.reject(refusal);
    if (this.#waiting.length >= QUEUE_MAX) {
      return Promise.reject(new BlockDeviceError('ENOMEM', `too many requests: ${this.#waiting.length} are waiting`));
    }
    return new Promise((resolve, reject) => {
      const checks = io.data === undefined ? NO_CHECKS : checksOf(io.data);
      this.#waiting.push({ io, checks, changes: this.durability.changes, resolve, reject });
      this.#pump();
    });
  }

  /**
   * The one used before is closed first, so that the server can reach no memory by it when requests are retransmitted.
   * Rejects, and closes the channel, when it fails, the server refuses or has another disk, or does not answer in time.
   */
  async resume(channel: SkClientChannel): Promise<void> {
    const old = this.#channel;
    this.#detach();
    await old?.close().catch(() => {}); // The next connection cannot reach what is left of this one.
    this.#epoch++;
    try {
      const { disk, follows, inlineWriteBytesMax, silenceNs } = this.#limits;
      const request = {
        sessionId: this.#sessionId,
        epoch: this.#epoch,
        inlineWriteBytesMax,
        disk: this.#expected.facts,
        wanted: this.#claim.name,
        claim: this.#claim.lease,
        follows,
      };
      const server = await resumeSession(channel, this.#clock, disk, request, silenceNs);
      if (this.#ended !== undefined) throw this.#ended;
      this.#expected.accept(server.disk);
      this.#claim.term = server.term;
      this.#takeOver(server);
    } catch (error) {
      await channel.close();
      throw error;
    }
    this.#attach(channel);
  }

  drain(timeoutNs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = this.#clock.wakeAt(this.#clock.nowNs() + timeoutNs, () => resolve(false));
      this.#onDrained = () => {
        cancel();
        resolve(true);
      };
      if (this.outstanding === 0) this.#onDrained();
    });
  }

  /** What the server has received of it is over when the first request is sent over that connection. */
  suspend(error: Error): void {
    const suspended = new BlockDeviceError('EIO', error.message);
    this.#suspended = suspended;
    const failed = [...this.#waiting.splice(0), ...this.#slots.giveUp()];
    for (const { reject } of failed) reject(suspended);
  }

  /** Does nothing where there is no connection, or requests are in flight; waits for the answer for `timeoutNs`. */
  async closeGracefully(timeoutNs: number): Promise<void> {
    if (this.#channel === undefined || this.outstanding > 0 || this.#waiting.length > 0) return;
    let cancel: () => void = () => {};
    const late = new Promise<void>((resolve) => {
      cancel = this.#clock.wakeAt(this.#clock.nowNs() + timeoutNs, resolve);
    });
    const closed = this.submit({ op: 'CLOSE', offset: 0, length: 0 }).catch(() => {});
    await Promise.race([closed, late]);
    cancel();
  }

  breakConnection(why: string): void {
    this.#lose(new RoceError('ERR_ROCE_CONNECT', why));
  }

  leave(): void {
    this.#lose(new NotOwnerRedirect('another server has the disk'));
  }

  async end(error: Error): Promise<void> {
    this.#ended = new BlockDeviceError('ESHUTDOWN', error.message);
    const channel = this.#channel;
    this.#detach();
    await this.#failAll(this.#ended, channel);
  }

  #newId(): Uint8Array {
    return Uint8Array.from({ length: SESSION_ID_BYTES }, () => this.#random.u32() & 0xff);
  }

  #header(op: SkOp, slot: number, slotSeq: number) {
    return { op, flags: 0, sessionLow: this.#sessionLow, slot, slotSeq, disk: this.#limits.disk, offset: 0, length: 0 };
  }

  #takeOver(server: ResumeResponse): void {
    this.counters.resumed++;
    if (this.#server !== undefined && this.#server.bootId !== server.bootId) this.counters.serverRestarts++;
    if (!server.resumed) this.#slots.restart();
    this.#server = server;
    this.#learnSize(server.disk.sizeBytes);
    this.durability.onVerifier(server.writeVerifier);
  }

  #attach(channel: SkClientChannel): void {
    this.#channel = channel;
    this.#suspended = undefined;
    this.#pongNs = this.#clock.nowNs();
    this.latency.clear();
    this.#onDrained = undefined;
    this.#mismatches = 0;
    channel.onReply = (reply) => this.#onReply(reply);
    channel.onFailure = (error) => this.#lose(error);
    this.#watch = this.#watchOver(channel);
    for (let slot = 0; slot < SK_SLOTS_MAX && this.#channel === channel; slot++) {
      if (this.#slots.at(slot).pending === undefined) continue;
      this.counters.resent++;
      this.#send(slot);
    }
    this.#pump();
  }

  #detach(): void {
    this.#watch?.stop();
    if (this.#channel === undefined) return;
    this.#channel.onReply = () => {};
    this.#channel.onFailure = () => {};
    this.#channel = undefined;
    this.#endPing();
  }

  #lose(error: Error): void {
    const channel = this.#channel;
    if (channel === undefined) return;
    this.#detach();
    this.onLost(channel, error);
  }

  #pump(): void {
    const { inFlightBytesMax } = this.#limits;
    // A failed request must not be executed after a newer one.
    if (this.#slots.cancellation > 0) return;
    while (this.#channel !== undefined && this.#onDrained === undefined && this.#waiting.length > 0) {
      if (!this.#slots.hasRoomFor(this.#waiting[0].io, inFlightBytesMax)) return;
      this.#send(this.#slots.take(this.#waiting.shift()!));
    }
  }

  #send(slot: number): void {
    const state = this.#slots.at(slot);
    const { io, checks } = state.pending!;
    state.sentNs = this.#clock.nowNs();
    const { op, offset, length, flags = 0 } = io;
    const inline = op === 'WRITE' && length > 0 && length <= this.#server!.inlineWriteBytesMax;
    // Fields are named one by one: a spread copy with different values gets a new V8 shape each time, which is slow to
    // read.
    const request = {
      op,
      flags: inline ? flags | SK_INLINE : flags,
      sessionLow: this.#sessionLow,
      slot,
      slotSeq: state.seq,
      disk: this.#limits.disk,
      offset,
      length,
    };
    this.#channel!.send({ request, data: io.data, into: io.into, checks });
  }

  #onReply(reply: SkReply): void {
    const { response } = reply;
    this.#watch?.onHeard();
    if (response.status === 'NOT_OWNER' && this.#limits.follows) {
      this.#lose(new NotOwnerRedirect('the storage server has lost the disk to another owner'));
      return;
    }
    if (response.slot === SK_NO_SLOT) {
      this.#onPingAnswered(reply);
      return;
    }
    const { pending, seq, sentNs } = this.#slots.at(response.slot);
    if (pending === undefined || seq !== response.slotSeq) {
      this.#lose(
        new RoceError('ERR_ROCE_MISMATCH', `there is a response for slot ${response.slot}, which has no request`),
      );
      return;
    }
    if (response.status === 'BAD_SEQ') {
      this.#loseSession();
      return;
    }
    if (response.status === 'CRC_MISMATCH' || !arrivedIntact(pending.io, reply)) {
      this.#onMismatch(response.slot);
      return;
    }
    this.#mismatches = 0;
    const now = this.#clock.nowNs();
    this.latency.add(now - sentNs);
    if (now - this.#pongNs >= PONG_NS) this.#ping(); // A busy connection is not asked otherwise.
    this.#slots.release(response.slot);
    if (pending !== ABANDONED) this.#finish(pending, reply);
    if (this.outstanding === 0) this.#onDrained?.();
    this.#pump();
  }

  #ping(): void {
    if (this.#isPinging || this.#channel === undefined) return;
    this.#isPinging = true;
    this.#channel.send({ request: this.#header('PING', SK_NO_SLOT, 0), data: undefined, checks: NO_CHECKS });
  }

  #onPingAnswered({ response, list, data }: SkReply): void {
    const isIntact = firstBadBlock(data, { dataCrc: response.dataCrc, list }) < 0;
    const pong = isIntact ? decodePong(data) : undefined;
    if (pong !== undefined) {
      this.#learnSize(pong.sizeBytes);
      this.#expected.learn(pong.opening);
    }
    this.#endPing();
  }

  #endPing(): void {
    this.#pongNs = this.#clock.nowNs();
    this.#isPinging = false;
    for (const tell of this.#onPong.splice(0)) tell();
  }

  /** A disk can only grow. */
  #learnSize(sizeBytes: number): void {
    this.#diskBytes = Math.max(this.#diskBytes, sizeBytes);
  }

  #finish(pending: PendingIo, { response, data }: SkReply): void {
    this.counters.completed++;
    if (response.status === 'OK') {
      deliver(pending.io, data);
      this.#settle(pending);
      return;
    }
    const errno = errnoOfStatus(response.status) ?? 'EIO';
    pending.reject(new BlockDeviceError(errno, `the server answered ${response.status} to ${pending.io.op}`));
  }

  #settle({ io, changes, resolve, reject }: PendingIo): void {
    const { op, flags = 0, cursor = this.#cursor } = io;
    if (op === 'FLUSH' && !this.durability.flushed(changes, cursor)) {
      reject(new BlockDeviceError('EIO', 'the store was restarted and may have lost data that was not flushed'));
      return;
    }
    if (CHANGES.has(op) && (flags & SK_FUA) === 0) this.durability.onChange(this.#server!.writeVerifier);
    resolve();
  }

  #onMismatch(slot: number): void {
    this.counters.crcMismatches++;
    this.#mismatches++;
    if (this.#mismatches < MISMATCHES_MAX) this.#send(slot);
    else this.#lose(new RoceError('ERR_ROCE_CONNECT', `${this.#mismatches} data checks failed in a row`));
  }

  /** Both sides disagree about the requests: the outcome of all in flight is unknown. */
  #loseSession(): void {
    void this.#failAll(new BlockDeviceError('EIO', 'the server no longer understands this session'), this.#channel);
    this.#slots.restart();
    this.#sessionId = this.#newId();
    this.#sessionLow = sessionLow(this.#sessionId);
    this.#lose(new RoceError('ERR_ROCE_MISMATCH', 'the session is lost'));
  }

  /** Closes the connection before what is in flight fails: until then the server may reach the memory of the caller. */
  async #failAll(error: Error, channel: SkClientChannel | undefined): Promise<void> {
    for (const { reject } of this.#waiting.splice(0)) reject(error);
    const failed = this.#slots.releaseAll();
    try {
      await channel?.close();
    } finally {
      for (const { reject } of failed) reject(error);
    }
  }

  #watchOver(channel: SkClientChannel): ConnectionWatch {
    const { idleNs, silenceNs } = this.#limits;
    return new ConnectionWatch({
      clock: this.#clock,
      idleNs,
      silenceNs,
      look: (nowNs) => this.#withdrawLate(channel, nowNs),
      ask: () => this.#ping(),
      onSilent: () => {
        this.#lose(new RoceError('ERR_ROCE_CONNECT', `the server was silent for ${silenceNs / 1e9} s`));
      },
    });
  }

  /**
   * A request that is not answered in time ends the connection, its memory being closed before anything else is done.
   */
  #withdrawLate(channel: SkClientChannel, nowNs: number): boolean {
    const { ioTimeoutNs } = this.#limits;
    const late = this.#slots.findLate(nowNs, ioTimeoutNs);
    if (late < 0) return false;
    this.#slots.at(late).sentNs = Number.POSITIVE_INFINITY;
    const timeout = new RoceError('ERR_ROCE_CONNECT', `a request was not answered for ${ioTimeoutNs / 1e9} s`);
    void channel.withdraw(late).then(() => {
      if (channel === this.#channel) this.#lose(timeout);
    });
    return true;
  }
}

function deliver({ into, take }: SkIo, data: Uint8Array): void {
  if (into === undefined) take?.(data);
  else if (data.buffer !== into.buffer || data.byteOffset !== into.byteOffset) into.set(data);
}
