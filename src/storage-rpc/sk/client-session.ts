/**
 * A session at the client: the identity of requests, which outlives every connection. A request has a slot and the slot's next sequence
 * number until it is answered; when a connection is lost and the session resumed over another, of whichever transport, every unanswered
 * request is sent again in the order of slots, under the same number, and the server executes it at most once.
 *
 * When the server does not know the session any more (it restarted: another bootId) the slots start anew. What was unanswered may have been
 * executed or not; all requests of disks may be executed again, so they are sent again.
 *
 * Bounds: SK_SLOTS_MAX requests and `inFlightBytesMax` bytes are under way; more wait, and `queueMax` at most.
 */

import type { Clock } from '../../core/clock.js';
import { RoceError } from '../../core/errors.js';
import type { RandomSource } from '../../core/random.js';
import { BlockDeviceError } from '../disk/block-device.js';
import { ConnectionWatch } from '../link/connection-watch.js';
import type { SkClientChannel, SkReply, TransportName } from './channel.js';
import { checksOf, type DataChecks, firstBadBlock, NO_CHECKS } from './data-checks.js';
import { DiskClaim } from './disk-claim.js';
import { DurabilityWatch, type FlushView } from './durability-watch.js';
import { ExpectedDisk } from './expected-disk.js';
import { resumeSession, sessionLow } from './handshake.js';
import { LatencyWindow } from './latency-window.js';
import {
  checkInlineWriteBytesMax,
  SK_FUA,
  SK_INLINE,
  SK_INLINE_BYTES_MAX,
  SK_NO_SLOT,
  SK_SLOTS_MAX,
  type SkOp,
} from './request.js';
import { errnoOfStatus } from './response.js';
import type { ResumeResponse } from './resume.js';

/** An operation on the disk. */
export interface SkIo {
  /** What to do. */
  readonly op: Exclude<SkOp, 'PING' | 'RESUME'>;
  /** SK_FUA, SK_NO_HOLE. */
  readonly flags?: number;
  /** Bytes from the start of the disk. */
  readonly offset: number;
  /** Bytes of data or of the range; 0 for FLUSH. */
  readonly length: number;
  /** Of a WRITE. */
  readonly data?: Uint8Array;
  /** Takes what a READ or STATUS brings, once it has been checked. */
  readonly take?: (data: Uint8Array) => void;
  /** Who asks, of those who have the disk open; default: the session itself. */
  readonly view?: FlushView;
}

/** Terms of a session. */
export interface ClientSessionOptions {
  /** For silence and time limits. */
  readonly clock: Clock;
  /** Makes the session id. */
  readonly random: RandomSource;
  /** Index of the server's disk; default 0. */
  readonly disk?: number;
  /** Writes up to here are sent with their request if the server agrees, 0..8192; default 8192. */
  readonly inlineWriteBytesMax?: number;
  /** Shared by sessions to one disk; default: one of its own. */
  readonly durability?: DurabilityWatch;
  /** Shared by sessions to one disk; default: one of its own, which takes any disk first. */
  readonly expected?: ExpectedDisk;
  /** Which disk, as whom, and to do what; shared by the sessions of a client. Default: one of its own, which shares the disk at the index. */
  readonly claim?: DiskClaim;
  /** Default 16 MiB. */
  readonly inFlightBytesMax?: number;
  /** Requests that may wait for a slot; default 4096. */
  readonly queueMax?: number;
  /** A silent connection is asked for a sign of life after so long; default 1 s. */
  readonly idleNs?: number;
  /** A connection that stays silent for so long has failed; default 3 s. */
  readonly silenceNs?: number;
  /** A request that is not answered for so long ends its connection; default 30 s. */
  readonly ioTimeoutNs?: number;
}

const DEFAULTS = {
  disk: 0,
  inlineWriteBytesMax: SK_INLINE_BYTES_MAX,
  inFlightBytesMax: 16 << 20,
  queueMax: 4096,
  idleNs: 1e9,
  silenceNs: 3e9,
  ioTimeoutNs: 30e9,
};

interface Request {
  readonly io: SkIo;
  readonly checks: DataChecks;
  /** Of a FLUSH: the changes it has to cover. */
  readonly changes: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

interface Slot {
  seq: number;
  request: Request | undefined;
  sentNs: number;
}

/** Failures of data checks one after another that end a connection. */
const MISMATCHES_MAX = 3;
const SESSION_ID_BYTES = 16;
/** Stands in the slot of a request that has failed here and may still be executed: its answer says that this is over. */
const NOTHING: Request = {
  io: { op: 'FLUSH', offset: 0, length: 0 },
  checks: NO_CHECKS,
  changes: 0,
  resolve: () => {},
  reject: () => {},
};
const CHANGES: ReadonlySet<SkOp> = new Set(['WRITE', 'TRIM', 'ZERO']);

/** One session to one disk. */
export class ClientSession {
  /** `resent`: requests sent again over another connection. */
  readonly counters = { completed: 0, resent: 0, crcMismatches: 0, resumed: 0, serverRestarts: 0 };
  /** Of requests answered over this connection, or the last one. */
  readonly latency = new LatencyWindow();
  /** Called when the connection has failed; its memory may still be open to the server until the channel has been closed. */
  onLost: (channel: SkClientChannel, error: Error) => void = () => {};
  readonly #clock: Clock;
  readonly #random: RandomSource;
  readonly #limits: typeof DEFAULTS;
  /** Shared with the other sessions to the disk. */
  readonly durability: DurabilityWatch;
  readonly #view: FlushView;
  readonly #expected: ExpectedDisk;
  readonly #claim: DiskClaim;
  readonly #slots: Slot[] = [];
  readonly #freeSlots: number[] = [];
  readonly #waiting: Request[] = [];
  #sessionId: Uint8Array;
  #sessionLow: bigint;
  #epoch = 0;
  #server: ResumeResponse | undefined;
  #channel: SkClientChannel | undefined;
  /** While set no new request is sent; called when nothing is under way. */
  #onDrained: (() => void) | undefined;
  #inFlightBytes = 0;
  #mismatches = 0;
  #watch: ConnectionWatch | undefined;
  #ended: Error | undefined;
  /** What requests fail with until there is a connection again. */
  #suspended: Error | undefined;
  /** Slots that have {@link NOTHING}. Nothing new is sent before they are answered: a request that has failed must not follow a newer one. */
  #nothings = 0;

  constructor(options: ClientSessionOptions) {
    const { clock, random, durability = new DurabilityWatch(), expected = new ExpectedDisk(), ...rest } = options;
    const { claim = new DiskClaim(random), ...limits } = rest;
    this.#clock = clock;
    this.#random = random;
    this.durability = durability;
    this.#view = durability.view();
    this.#expected = expected;
    this.#claim = claim;
    this.#limits = { ...DEFAULTS, ...limits };
    checkInlineWriteBytesMax(this.#limits.inlineWriteBytesMax);
    this.#sessionId = this.#newId();
    this.#sessionLow = sessionLow(this.#sessionId);
    for (let slot = SK_SLOTS_MAX - 1; slot >= 0; slot--) this.#freeSlots.push(slot);
    for (let slot = 0; slot < SK_SLOTS_MAX; slot++) this.#slots.push({ seq: 0, request: undefined, sentNs: 0 });
  }

  /** What the server said of itself and the disk; undefined before the first connection. */
  get server(): ResumeResponse | undefined {
    return this.#server;
  }

  /** The transport in use; undefined while there is no connection. */
  get transport(): TransportName | undefined {
    return this.#channel?.transport;
  }

  /** Requests under way. */
  get outstanding(): number {
    return SK_SLOTS_MAX - this.#freeSlots.length;
  }

  /**
   * Runs an operation, over as many connections as it takes. Rejects with a BlockDeviceError: the disk's own, EIO when the session is
   * lost or suspended, ENOMEM when too many wait, ESHUTDOWN after `end`.
   */
  submit(io: SkIo): Promise<void> {
    const refusal = this.#ended ?? this.#suspended;
    if (refusal !== undefined) return Promise.reject(refusal);
    if (this.#waiting.length >= this.#limits.queueMax) {
      return Promise.reject(new BlockDeviceError('ENOMEM', `too many requests: ${this.#waiting.length} are waiting`));
    }
    return new Promise((resolve, reject) => {
      const checks = io.data === undefined ? NO_CHECKS : checksOf(io.data);
      this.#waiting.push({ io, checks, changes: this.durability.changes, resolve, reject });
      this.#pump();
    });
  }

  /**
   * Goes on over a connection. The one used before is closed first, so that the server can reach no memory by it when requests are sent
   * again. Rejects, and closes the channel, when it fails, the server refuses or has another disk, or does not answer in time.
   */
  async resume(channel: SkClientChannel): Promise<void> {
    const old = this.#channel;
    this.#detach();
    await old?.close().catch(() => {}); // What is left of it cannot be reached by the next one.
    this.#epoch++;
    try {
      const { disk, inlineWriteBytesMax, silenceNs } = this.#limits;
      const request = {
        sessionId: this.#sessionId,
        epoch: this.#epoch,
        inlineWriteBytesMax,
        disk: this.#expected.facts,
        wanted: this.#claim.name,
        claim: this.#claim.lease,
      };
      const server = await resumeSession(channel, this.#clock, disk, request, silenceNs);
      if (this.#ended !== undefined) throw this.#ended;
      this.#expected.accept(server.disk);
      this.#claim.term = server.term;
      this.#adopt(server);
    } catch (error) {
      await channel.close();
      throw error;
    }
    this.#attach(channel);
  }

  /** Stops sending new requests and resolves when all are answered, true, or after `timeoutNs`, false. `resume` starts them again. */
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

  /**
   * Fails everything that waits or is under way, and what is asked for until there is a connection again. What the server has received of it
   * is over when the first request is sent over that connection.
   */
  suspend(error: Error): void {
    this.#suspended = error;
    const failed = this.#waiting.splice(0);
    for (const slot of this.#slots) {
      if (slot.request === undefined || slot.request === NOTHING) continue;
      failed.push(slot.request);
      this.#inFlightBytes -= bytesMovedBy(slot.request.io);
      slot.request = NOTHING;
      this.#nothings++;
    }
    for (const { reject } of failed) reject(error);
  }

  /**
   * Tells the server that this is the end of the session, and of the client's lease with its last one. Does nothing where there is no connection, or
   * requests are under way; waits for the answer for `timeoutNs`.
   */
  async sayGoodbye(timeoutNs: number): Promise<void> {
    if (this.#channel === undefined || this.outstanding > 0 || this.#waiting.length > 0) return;
    let cancel: () => void = () => {};
    const late = new Promise<void>((resolve) => {
      cancel = this.#clock.wakeAt(this.#clock.nowNs() + timeoutNs, resolve);
    });
    const closed = this.submit({ op: 'CLOSE', offset: 0, length: 0 }).catch(() => {});
    await Promise.race([closed, late]);
    cancel();
  }

  /** Ends the connection as if it had failed. */
  breakConnection(why: string): void {
    this.#lose(new RoceError('ERR_ROCE_CONNECT', why));
  }

  /** Fails everything that waits or is under way, now and later, and closes the connection. */
  async end(error: Error): Promise<void> {
    this.#ended = error;
    const channel = this.#channel;
    this.#detach();
    this.#failAll(error);
    await channel?.close();
  }

  #newId(): Uint8Array {
    return Uint8Array.from({ length: SESSION_ID_BYTES }, () => this.#random.u32() & 0xff);
  }

  #header(op: SkOp, slot: number, slotSeq: number) {
    return { op, flags: 0, sessionLow: this.#sessionLow, slot, slotSeq, disk: this.#limits.disk, offset: 0, length: 0 };
  }

  /** Takes note of the server; if it has forgotten the session, numbers start anew. */
  #adopt(server: ResumeResponse): void {
    this.counters.resumed++;
    if (this.#server !== undefined && this.#server.bootId !== server.bootId) this.counters.serverRestarts++;
    if (!server.resumed) for (const slot of this.#slots) slot.seq = slot.request === undefined ? 0 : 1;
    this.#server = server;
    this.durability.onStore(server.storeId);
  }

  #attach(channel: SkClientChannel): void {
    this.#channel = channel;
    this.#suspended = undefined;
    this.latency.clear();
    this.#onDrained = undefined;
    this.#mismatches = 0;
    channel.onReply = (reply) => this.#onReply(reply);
    channel.onFailure = (error) => this.#lose(error);
    this.#watch = this.#watchOver(channel);
    for (let slot = 0; slot < SK_SLOTS_MAX && this.#channel === channel; slot++) {
      if (this.#slots[slot].request === undefined) continue;
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
  }

  #lose(error: Error): void {
    const channel = this.#channel;
    if (channel === undefined) return;
    this.#detach();
    this.onLost(channel, error);
  }

  #pump(): void {
    const { inFlightBytesMax } = this.#limits;
    if (this.#nothings > 0) return;
    while (this.#channel !== undefined && this.#onDrained === undefined && this.#waiting.length > 0) {
      const bytes = bytesMovedBy(this.#waiting[0].io);
      const crowded = this.#inFlightBytes > 0 && this.#inFlightBytes + bytes > inFlightBytesMax;
      if (this.#freeSlots.length === 0 || crowded) return;
      const slot = this.#freeSlots.pop()!;
      const state = this.#slots[slot];
      state.request = this.#waiting.shift()!;
      state.seq = (state.seq + 1) >>> 0;
      this.#inFlightBytes += bytes;
      this.#send(slot);
    }
  }

  #send(slot: number): void {
    const state = this.#slots[slot];
    const { io, checks } = state.request!;
    state.sentNs = this.#clock.nowNs();
    const { op, offset, length, flags = 0 } = io;
    const inline = op === 'WRITE' && length > 0 && length <= this.#server!.inlineWriteBytesMax;
    const request = {
      ...this.#header(op, slot, state.seq),
      flags: inline ? flags | SK_INLINE : flags,
      offset,
      length,
    };
    this.#channel!.send({ request, data: io.data, checks });
  }

  #onReply(reply: SkReply): void {
    const { response } = reply;
    this.#watch?.onHeard();
    if (response.slot === SK_NO_SLOT) return; // A PING was answered.
    const { request, seq } = this.#slots[response.slot];
    if (request === undefined || seq !== response.slotSeq) {
      this.#lose(
        new RoceError('ERR_ROCE_MISMATCH', `there is a response for slot ${response.slot}, which has no request`),
      );
      return;
    }
    if (response.status === 'BAD_SEQ') {
      this.#loseSession();
      return;
    }
    if (response.status === 'CRC_MISMATCH' || !arrivedIntact(request.io, reply)) {
      this.#onMismatch(response.slot);
      return;
    }
    this.#mismatches = 0;
    this.latency.add(this.#clock.nowNs() - this.#slots[response.slot].sentNs);
    this.#release(response.slot);
    if (request === NOTHING) {
      if (this.outstanding === 0) this.#onDrained?.();
      this.#pump();
      return;
    }
    this.counters.completed++;
    if (response.status === 'OK') {
      request.io.take?.(reply.data);
      this.#settle(request);
    } else {
      const errno = errnoOfStatus(response.status) ?? 'EIO';
      request.reject(new BlockDeviceError(errno, `the server answered ${response.status} to ${request.io.op}`));
    }
    if (this.outstanding === 0) this.#onDrained?.();
    this.#pump();
  }

  /** The server has done it. */
  #settle({ io, changes, resolve, reject }: Request): void {
    const { op, flags = 0, view = this.#view } = io;
    if (op === 'FLUSH' && !this.durability.flushed(changes, view)) {
      reject(new BlockDeviceError('EIO', 'the store was restarted and may have lost data that was not flushed'));
      return;
    }
    if (CHANGES.has(op) && (flags & SK_FUA) === 0) this.durability.onChange(this.#server!.storeId);
    resolve();
  }

  /** The same request again; a connection that mangles data again and again is given up. */
  #onMismatch(slot: number): void {
    this.counters.crcMismatches++;
    this.#mismatches++;
    if (this.#mismatches < MISMATCHES_MAX) this.#send(slot);
    else this.#lose(new RoceError('ERR_ROCE_CONNECT', `${this.#mismatches} data checks failed in a row`));
  }

  #release(slot: number): void {
    const state = this.#slots[slot];
    this.#inFlightBytes -= bytesMovedBy(state.request!.io);
    if (state.request === NOTHING) this.#nothings--;
    state.request = undefined;
    this.#freeSlots.push(slot);
  }

  /** Both sides disagree about what was asked: nothing under way can be vouched for. The next connection starts a new session. */
  #loseSession(): void {
    this.#failAll(new BlockDeviceError('EIO', 'the server no longer understands this session'));
    for (const slot of this.#slots) slot.seq = 0;
    this.#sessionId = this.#newId();
    this.#sessionLow = sessionLow(this.#sessionId);
    this.#lose(new RoceError('ERR_ROCE_MISMATCH', 'the session is lost'));
  }

  #failAll(error: Error): void {
    const failed = this.#waiting.splice(0);
    this.#slots.forEach(({ request }, slot) => {
      if (request === undefined) return;
      failed.push(request);
      this.#release(slot);
    });
    for (const { reject } of failed) reject(error);
  }

  #watchOver(channel: SkClientChannel): ConnectionWatch {
    const { idleNs, silenceNs } = this.#limits;
    const request = this.#header('PING', SK_NO_SLOT, 0);
    return new ConnectionWatch({
      clock: this.#clock,
      idleNs,
      silenceNs,
      look: (nowNs) => this.#withdrawLate(channel, nowNs),
      ask: () => channel.send({ request, data: undefined, checks: NO_CHECKS }),
      onSilent: () => {
        this.#lose(new RoceError('ERR_ROCE_CONNECT', `the server was silent for ${silenceNs / 1e9} s`));
      },
    });
  }

  /** A request that is not answered in time ends the connection, its memory being closed before anything else is done. True: there is one. */
  #withdrawLate(channel: SkClientChannel, nowNs: number): boolean {
    const { ioTimeoutNs } = this.#limits;
    const late = this.#slots.findIndex(({ request, sentNs }) => request !== undefined && nowNs - sentNs >= ioTimeoutNs);
    if (late < 0) return false;
    this.#slots[late].sentNs = Number.POSITIVE_INFINITY;
    const timeout = new RoceError('ERR_ROCE_CONNECT', `a request was not answered for ${ioTimeoutNs / 1e9} s`);
    void channel.withdraw(late).then(() => {
      if (channel === this.#channel) this.#lose(timeout);
    });
    return true;
  }
}

function bytesMovedBy({ op, length }: SkIo): number {
  return op === 'READ' || op === 'WRITE' ? length : 0;
}

/** What came with the answer is what the server checked, and as much as was asked for. */
function arrivedIntact({ op, length }: SkIo, { response, list, data }: SkReply): boolean {
  if (response.status !== 'OK' || (op !== 'READ' && op !== 'STATUS')) return true;
  if (op === 'READ' && data.length !== length) return false;
  return data.length === 0 || firstBadBlock(data, { dataCrc: response.dataCrc, list }) < 0;
}
