/**
 * The owner of a stream appends to it and assigns each record's position. The primary forwards to both secondaries and
 * answers when all three have it. After any error that extent gets nothing more: the manager seals it, and unanswered
 * records go to a new extent under the same identity.
 */

import { type Clock, checkKind, NS_PER_MS, pause, RoceError } from 'rocev2/internal/core';
import { codeOf, type ExtentPlace, type Manager, type Nodes } from './messages.js';
import { encodeRecord, RECORD_DATA_MAX, recordBytes } from './record.js';

export interface WriterParts {
  readonly nodes: Nodes;
  readonly manager: Manager;
  readonly clock: Clock;
  readonly timing: WriterTiming;
  readonly onExtent?: (place: ExtentPlace) => void;
  /** Why the lease could not be renewed before it ended; undefined: it has been renewed after that. */
  readonly onLease?: (why: Error | undefined) => void;
}

export interface WriterTiming {
  readonly callMs: number;
  readonly retryMs: number;
  readonly leaseMs: number;
  /** An idle owner that was replaced learns of it within this time. */
  readonly renewMs?: number;
}

/** Location of a record. */
export interface Location {
  /** Number of its extent. */
  readonly extent: number;
  /** Offset of its first byte in the extent. */
  readonly offset: number;
}

/** Counters of a writer. */
export interface WriterCounters {
  /** Appends acknowledged. */
  appends: number;
  /** Extents left because of an error. */
  failovers: number;
  /** Records sent to another extent. */
  resent: number;
}

interface Append {
  readonly sequence: number;
  readonly data: Uint8Array;
  readonly crcs: Uint32Array | undefined;
  readonly resolve: (location: Location) => void;
  readonly reject: (error: Error) => void;
  at: { readonly offset: number; readonly end: number } | undefined;
}

/** The owner of a stream. */
export class StreamWriter {
  /** Its name. */
  readonly stream: string;
  /** Rises with each owner of the stream. */
  readonly epoch: number;
  /** Since it was opened. */
  readonly counters: WriterCounters = { appends: 0, failovers: 0, resent: 0 };
  readonly #parts: WriterParts;
  /** An extent with this many bytes of records is followed by another. */
  readonly extentBytes: number;
  #open: Append[] = [];
  #last: Promise<Location> | undefined;
  #extent: ExtentPlace | undefined;
  #end = 0;
  #isFull = false;
  #acked = 0;
  #sequence = 0;
  #suspects: number[] = [];
  #moving: Promise<void> | undefined;
  #failure: Error | undefined;
  #onEnd: () => void = () => {};
  /** Resolves when appends are rejected; {@link failure} has the reason. @internal */
  readonly ended = new Promise<void>((resolve) => {
    this.#onEnd = resolve;
  });
  readonly #owner: string;
  #stopLease: () => void = () => {};
  #heldNs = 0;
  /** Renewals without an answer. */
  readonly #renewing = new Set<Promise<unknown>>();
  #waiting: Array<() => void> = [];
  #isInDoubt = false;
  #endsWithLease = false;
  #address: string | undefined;

  private constructor(
    stream: string,
    owner: string,
    { epoch, extentBytes }: { epoch: number; extentBytes: number },
    parts: WriterParts,
  ) {
    this.stream = stream;
    this.#owner = owner;
    this.epoch = epoch;
    this.extentBytes = extentBytes;
    this.#parts = parts;
  }

  /**
   * Becomes the owner of a stream. `extents` are those that it has, all sealed. Rejects with BUSY while it has another
   * owner, unless `takeOver`: then the other one is fenced. @internal
   */
  static async open(
    { stream, owner, takeOver = false }: { stream: string; owner: string; takeOver?: boolean },
    parts: WriterParts,
  ): Promise<{ readonly writer: StreamWriter; readonly extents: readonly ExtentPlace[] }> {
    const { leaseMs, callMs } = parts.timing;
    const askedNs = parts.clock.nowNs();
    const opened = await parts.manager.call('openStream', { stream, owner, leaseMs, takeOver }, callMs);
    const writer = new StreamWriter(stream, owner, opened, parts);
    writer.#heldNs = askedNs;
    writer.#keepLease();
    return { writer, extents: opened.extents };
  }

  /** Why appends are rejected: another owner, or {@link close}. */
  get failure(): Error | undefined {
    return this.#failure;
  }

  /** Whether the lease is valid: another owner would need a takeover. */
  get isHeld(): boolean {
    const { clock, timing } = this.#parts;
    return this.#failure === undefined && clock.nowNs() < this.#heldNs + timing.leaseMs * NS_PER_MS;
  }

  /**
   * Resolves when the lease is valid, and when the stream can never be appended to again ({@link failure}): after the
   * lease has ended, as while no manager answers, the owner keeps the stream if nobody else has opened it. @internal
   */
  whenCertain(): Promise<void> {
    if (this.isHeld || this.#failure !== undefined) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** From now on the writer fails when its lease ends: nobody waits for a manager after close. @internal */
  endWithLease(): void {
    this.#endsWithLease = true;
  }

  #becomeCertain(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Asks the manager for the lease again. Rejects with FENCED if the stream has another owner. @internal */
  async renew(): Promise<void> {
    const { clock, manager, timing, onLease } = this.#parts;
    const askedNs = clock.nowNs();
    const address = this.#address;
    const own = { stream: this.stream, epoch: this.epoch, owner: this.#owner, leaseMs: timing.leaseMs };
    const answer = manager.call('renew', { ...own, ...(address !== undefined && { address }) }, timing.callMs);
    this.#renewing.add(answer);
    try {
      await answer;
    } finally {
      this.#renewing.delete(answer);
    }
    this.#heldNs = Math.max(this.#heldNs, askedNs);
    if (!this.isHeld) return;
    this.#becomeCertain();
    if (this.#isInDoubt) onLease?.(undefined);
    this.#isInDoubt = false;
  }

  /**
   * Reports to the manager where the owner serves the content of the stream, `HOST:PORT`, while it is the owner.
   * Resolves when the manager has it; if that fails, the next renewal of the lease reports it. @internal
   */
  async announce(address: string): Promise<void> {
    this.#address = address;
    await this.renew().catch(() => {});
  }

  /** The extent that is written now. */
  get extent(): ExtentPlace | undefined {
    return this.#extent;
  }

  /**
   * Appends a record; resolves when it is durable on all replicas. Records are ordered by the calls, and any number may
   * be in flight. `data` must not change before that. Rejects with FENCED when the stream has another owner,
   * ERR_ROCE_OUT_OF_RANGE for more than 4 MiB, ERR_ROCE_INVALID_ARGUMENT, ERR_ROCE_CLOSED.
   */
  append(data: Uint8Array, crcs?: Uint32Array): Promise<Location> {
    const acknowledged = new Promise<Location>((resolve, reject) => {
      if (this.#failure !== undefined) return reject(this.#failure);
      checkKind('data', data, data instanceof Uint8Array, 'a Uint8Array');
      if (data.length > RECORD_DATA_MAX)
        return reject(new RoceError('ERR_ROCE_OUT_OF_RANGE', `a record of ${data.length} bytes`, '4 MiB at most'));
      const append = { sequence: this.#sequence++, data, crcs, resolve, reject, at: undefined };
      this.#open.push(append);
      this.#send(append);
    });
    this.#last = acknowledged;
    return acknowledged;
  }

  #send(append: Append): void {
    if (this.#moving !== undefined) return;
    const extent = this.#extent;
    const bytes = recordBytes(append.data.length);
    this.#isFull ||= this.#end > 0 && this.#end + bytes > this.extentBytes;
    if (extent === undefined || this.#isFull) {
      // What is in flight ends first: a full extent is sealed with nothing in doubt.
      if (this.#open.every(({ at }) => at === undefined)) this.#move();
      return;
    }
    const offset = this.#end;
    append.at = { offset, end: offset + bytes };
    this.#end += bytes;
    void this.#append(extent, append, offset);
  }

  async #append({ extent, epoch, replicas }: ExtentPlace, append: Append, offset: number): Promise<void> {
    const { nodes, timing } = this.#parts;
    const identity = { extent, offset, writer: this.epoch, sequence: append.sequence, committed: this.#acked };
    const record = encodeRecord(identity, append.data, append.crcs);
    const [primary, ...secondaries] = replicas;
    let suspects: number[];
    try {
      const answer = await nodes.call(primary, 'append', { extent, epoch, offset, record, secondaries }, timing.callMs);
      if (answer.failed === undefined) {
        if (this.#extent?.extent === extent) this.#onAck(offset + record.length);
        return;
      }
      suspects = [answer.failed];
    } catch (error) {
      suspects = ['FENCED', 'SEALED', 'CONFLICT'].includes(codeOf(error)) ? [] : [primary.node];
    }
    if (this.#extent?.extent !== extent || this.#moving !== undefined) return;
    this.counters.failovers++;
    this.#suspects = suspects;
    this.#move();
  }

  #onAck(end: number): void {
    if (end <= this.#acked || this.#moving !== undefined) return;
    this.#acked = end;
    const { extent } = this.#extent!;
    const done = this.#open.filter(({ at }) => at !== undefined && at.end <= end);
    this.#open = this.#open.slice(done.length);
    this.counters.appends += done.length;
    for (const { at, resolve } of done) resolve({ extent, offset: at!.offset });
    if (this.#open.length > 0 && this.#open[0].at === undefined) this.#move();
  }

  #move(): void {
    this.#moving ??= this.#moveOn().catch((error: Error) => this.#fail(error));
  }

  async #moveOn(): Promise<void> {
    const { clock, manager, timing, onExtent } = this.#parts;
    const old = this.#extent;
    for (;;) {
      const where = old === undefined ? { acked: 0 } : { extent: old.extent, acked: this.#acked };
      const request = { stream: this.stream, epoch: this.epoch, ...where, suspects: this.#suspects };
      try {
        this.#extent = await manager.call('advance', request, timing.callMs);
        break;
      } catch (error) {
        if (codeOf(error) === 'FENCED' || codeOf(error) === 'MISSING') throw error;
        if (codeOf(error) === 'NO_SPACE') this.#suspects = [];
        await pause(clock, timing.retryMs * NS_PER_MS);
        if (this.#failure !== undefined) return;
      }
    }
    onExtent?.(this.#extent);
    this.#end = 0;
    this.#isFull = false;
    this.#acked = 0;
    this.#suspects = [];
    this.#moving = undefined;
    for (const append of this.#open) {
      if (append.at !== undefined) this.counters.resent++;
      append.at = undefined;
    }
    for (const append of [...this.#open]) this.#send(append);
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#onEnd();
    this.#stopLease();
    this.#becomeCertain();
    for (const { reject } of this.#open.splice(0)) reject(this.#failure);
  }

  /**
   * Renews the lease in time. When it may have ended, another owner may exist: {@link isHeld} is false until the
   * manager has decided.
   */
  #keepLease(): void {
    const { clock, timing } = this.#parts;
    const { leaseMs, renewMs = leaseMs / 4 } = timing;
    this.#stopLease = clock.wakeAt(clock.nowNs() + renewMs * NS_PER_MS, async () => {
      try {
        await this.renew();
      } catch (error) {
        if (codeOf(error) === 'FENCED' || codeOf(error) === 'MISSING') return this.#fail(error as Error);
        if (!this.isHeld && this.#endsWithLease) return this.#fail(leaseEnded(this.stream));
        if (!this.isHeld && !this.#isInDoubt) {
          this.#isInDoubt = true;
          this.#parts.onLease?.(error as Error);
        }
      }
      if (this.#failure === undefined) this.#keepLease();
    });
  }

  /** Waits for all appends and releases the stream for the next owner. */
  async close(): Promise<void> {
    this.endWithLease();
    await this.#last?.catch(() => {});
    if (this.#failure !== undefined) return;
    this.#fail(new RoceError('ERR_ROCE_CLOSED', `the stream '${this.stream}' is closed`));
    // A renewal that the manager handles after the release would give the lease to this owner again.
    await Promise.allSettled(this.#renewing);
    const { manager, timing } = this.#parts;
    await manager.call('release', { stream: this.stream, epoch: this.epoch }, timing.callMs).catch(() => {});
  }
}

function leaseEnded(stream: string): RoceError {
  return new RoceError(
    'ERR_ROCE_TIMEOUT',
    `the stream '${stream}' was closed, and its lease ended before its last records were stored`,
  );
}
