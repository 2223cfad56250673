/**
 * A session at the server, which outlives connections. A newer connection fences the older one before it is answered,
 * so that no work of the old one touches memory afterwards.
 */

import type { Clock } from '../../core/clock.js';
import { RoceError } from '../../core/errors.js';
import type { FairClient } from '../../core/fair-queue.js';
import { BlockDeviceError, NotOwnerError } from '../disk/block-device.js';
import type { SkIncoming, SkServerChannel } from './channel.js';
import { checksOf, checksOfCrcs, NO_CHECKS } from './data-checks.js';
import { encodePong } from './pong.js';
import { SK_SLOTS_MAX, type SkOp } from './request.js';
import { type RequestOutcome, RequestRunner } from './request-runner.js';
import type { ServedDisk } from './served-disk.js';
import type { SkServerCounters } from './server-counters.js';
import { SlotTable } from './slot-table.js';

interface Target {
  readonly channel: SkServerChannel;
  readonly incoming: SkIncoming;
  readonly arrivedNs: number;
}

const CHANGES: ReadonlySet<SkOp> = new Set(['WRITE', 'TRIM', 'ZERO']);

export interface ServerSessionParts {
  readonly disk: ServedDisk;
  readonly diskNumber: number;
  readonly owner: string;
  readonly readOnly: boolean;
  readonly follows: boolean;
  readonly turns: FairClient;
  readonly clock: Clock;
  readonly counters: SkServerCounters;
  readonly onFenced: () => void;
  readonly onClosed: () => void;
}

export class ServerSession {
  readonly disk: ServedDisk;
  readonly owner: string;
  readonly #parts: ServerSessionParts;
  readonly #runner: RequestRunner;
  readonly #clock: Clock;
  readonly #counters: SkServerCounters;
  readonly #slots = new SlotTable(SK_SLOTS_MAX);
  readonly #targets: Array<Target | undefined> = Array(SK_SLOTS_MAX).fill(undefined);
  #epoch = -1;
  #channel: SkServerChannel | undefined;
  lastHeardNs: number;
  #isFenced = false;
  #closing = 0;
  #isClosed = false;
  readonly #waitingForEnds: Array<() => void> = [];

  constructor(parts: ServerSessionParts) {
    this.disk = parts.disk;
    this.owner = parts.owner;
    this.#parts = parts;
    const { disk, turns, counters } = parts;
    this.#runner = new RequestRunner({ disk, turns, counters, isFenced: () => this.#isFenced });
    this.#clock = parts.clock;
    this.#counters = parts.counters;
    this.lastHeardNs = parts.clock.nowNs();
  }

  get isConnected(): boolean {
    return this.#channel !== undefined;
  }

  get executing(): number {
    return this.#slots.executing;
  }

  get isFenced(): boolean {
    return this.#isFenced;
  }

  get #isLost(): boolean {
    return this.#parts.follows && this.disk.device.notOwner !== undefined;
  }

  get channel(): SkServerChannel | undefined {
    return this.#channel;
  }

  /** Resolves when the old connection is fenced off. */
  async bind(channel: SkServerChannel, epoch: number): Promise<boolean> {
    if (epoch <= this.#epoch) return false;
    this.#epoch = epoch;
    const old = this.#channel;
    this.#channel = channel;
    this.lastHeardNs = this.#clock.nowNs();
    if (old !== undefined) {
      this.#counters.fenced++;
      await old.close();
    }
    return this.#epoch === epoch;
  }

  get isIdle(): boolean {
    return this.#channel === undefined && this.#slots.executing === 0;
  }

  /** Resolves when nothing of it is at the disk, or ever will be. */
  async fence(): Promise<void> {
    this.#isFenced = true;
    this.#counters.takenOver++;
    const channel = this.#channel;
    this.#channel = undefined;
    this.#parts.onFenced();
    await channel?.close();
    await this.#untilExecuting(() => 0);
  }

  close(): void {
    this.#parts.turns.leave();
  }

  unbind(channel: SkServerChannel): void {
    if (this.#channel === channel) this.#channel = undefined;
  }

  /** What comes over a connection that no longer has the session is dropped. */
  handle(channel: SkServerChannel, incoming: SkIncoming): void {
    if (channel !== this.#channel) {
      incoming.release();
      return;
    }
    this.lastHeardNs = this.#clock.nowNs();
    const target = { channel, incoming, arrivedNs: this.lastHeardNs };
    const { op, slot, slotSeq } = incoming.request;
    if (op === 'PING') {
      const { sizeBytes, identity } = this.disk.device;
      const bytes = encodePong({ sizeBytes, ...(identity?.openings && { openings: identity.openings }) });
      this.#answer(target, { status: this.#isLost ? 'NOT_OWNER' : 'OK', data: { bytes, release: () => {} } });
      // Clients learn of it by the next PING; if it fails, requests will say so.
      void this.disk.use(async (device) => device.checkpoint?.()).catch(() => {});
      return;
    }
    switch (this.#slots.admit(slot, slotSeq, op === 'READ' || op === 'STATUS')) {
      case 'new':
        this.#targets[slot] = target;
        void this.#execute(slot);
        return;
      case 'again':
        this.#counters.attached++;
        this.#targets[slot]?.incoming.release();
        this.#targets[slot] = target;
        return;
      case 'cached':
        this.#counters.cachedReplies++;
        this.#answer(target, { status: this.#slots.outcome(slot) });
        return;
      case 'bad_seq':
        this.#counters.badSequences++;
        this.#answer(target, { status: 'BAD_SEQ' });
    }
  }

  async #execute(slot: number): Promise<void> {
    for (;;) {
      const target = this.#targets[slot]!;
      const outcome = await this.#run(target);
      const latest = this.#targets[slot]!;
      const cameAgain = latest !== target;
      // Memory of the old connection cannot be used by the new one, and data that never came was not executed.
      if (cameAgain && (outcome === undefined || outcome.data !== undefined || outcome.status === 'CRC_MISMATCH')) {
        outcome?.data?.release();
        continue;
      }
      this.#targets[slot] = undefined;
      const isDone = outcome !== undefined && outcome.status !== 'CRC_MISMATCH' && outcome.status !== 'NOT_OWNER';
      if (!isDone) this.#slots.abandon(slot);
      else this.#slots.finish(slot, outcome.status);
      for (const tell of this.#waitingForEnds.splice(0)) tell();
      if (outcome === undefined) latest.incoming.release();
      else {
        this.#counters.executed++;
        this.#answer(latest, outcome);
      }
      return;
    }
  }

  async #run({ channel, incoming }: Target): Promise<RequestOutcome | undefined> {
    const { request } = incoming;
    const { disk, diskNumber, readOnly } = this.#parts;
    if (request.disk !== diskNumber || disk.isRemoved) return { status: 'NO_DISK' };
    if (this.#isClosed) return { status: 'NO_SESSION' };
    if (readOnly && CHANGES.has(request.op)) return { status: 'EPERM' };
    if (request.op === 'CLOSE') return this.#close();
    try {
      return await (request.op === 'READ'
        ? this.#runner.read(channel, request)
        : this.#runner.change(channel, incoming));
    } catch (error) {
      if (error instanceof NotOwnerError && this.#parts.follows) return { status: 'NOT_OWNER' };
      if (error instanceof BlockDeviceError) return { status: error.errno };
      if (channel !== this.#channel) return undefined;
      if (this.#isFenced) return { status: 'FENCED' };
      const crowded = error instanceof RoceError && error.code === 'ERR_ROCE_LIMIT';
      return { status: crowded ? 'ENOMEM' : 'EIO' };
    }
  }

  async #close(): Promise<RequestOutcome> {
    this.#closing++;
    await this.#untilExecuting(() => this.#closing);
    if (!this.#isClosed) this.#parts.onClosed();
    this.#isClosed = true;
    return { status: 'OK' };
  }

  async #untilExecuting(count: () => number): Promise<void> {
    while (this.#slots.executing > count()) await new Promise<void>((resolve) => this.#waitingForEnds.push(resolve));
  }

  #answer({ channel, incoming, arrivedNs }: Target, { status, data, crcs }: RequestOutcome): void {
    const { request } = incoming;
    // The receive is reposted before the client learns that its slot is free.
    incoming.release();
    // A NIC in a separate thread works while the checksums are computed.
    if (request.op === 'READ' && data !== undefined) channel.move(request, data);
    const checks = crcs !== undefined ? checksOfCrcs(crcs) : data === undefined ? NO_CHECKS : checksOf(data.bytes);
    const response = {
      status,
      flags: 0,
      slot: request.slot,
      slotSeq: request.slotSeq,
      dataCrc: checks.dataCrc,
      moved: data?.bytes.length ?? 0,
      serverTimeUs: Math.round((this.#clock.nowNs() - arrivedNs) / 1e3) >>> 0,
    };
    void channel.reply(request, response, checks.list, data).then(() => data?.release());
  }
}
