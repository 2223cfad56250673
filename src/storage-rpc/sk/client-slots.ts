/**
 * The requests of a session at the client that are under way. Each has a slot, and the slot's next sequence number, until it is answered: what
 * comes again after a failure has the same two, so that the server executes it at most once. Sans-IO.
 */

import type { SkReply } from './channel.js';
import { type DataChecks, firstBadBlock, NO_CHECKS } from './data-checks.js';
import type { FlushView } from './durability-watch.js';
import { SK_SLOTS_MAX, type SkOp } from './request.js';

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
  /** Where the data of a READ goes; nothing is promised of it when the READ fails. */
  readonly into?: Uint8Array;
  /** Takes what a STATUS, or a READ without `into`, brings, once it has been checked. */
  readonly take?: (data: Uint8Array) => void;
  /** Who asks, of those who have the disk open; default: the session itself. */
  readonly view?: FlushView;
}

/** An operation that somebody waits for. */
export interface PendingIo {
  /** The operation. */
  readonly io: SkIo;
  /** Of its data. */
  readonly checks: DataChecks;
  /** Of a FLUSH: the changes it has to cover. */
  readonly changes: number;
  /** It is done. */
  readonly resolve: () => void;
  /** It failed. */
  readonly reject: (error: Error) => void;
}

/** A slot as others see it. */
export interface ClientSlot {
  /** Sequence number of the last request in it. */
  readonly seq: number;
  /** Undefined: it is free. */
  readonly pending: PendingIo | undefined;
  /** When the request was last sent. */
  sentNs: number;
}

interface Slot extends ClientSlot {
  seq: number;
  pending: PendingIo | undefined;
}

/** Stands in the slot of a request that has failed here and may still be executed: its answer says that this is over. */
export const GIVEN_UP: PendingIo = {
  io: { op: 'FLUSH', offset: 0, length: 0 },
  checks: NO_CHECKS,
  changes: 0,
  resolve: () => {},
  reject: () => {},
};

/** All slots of a session. */
export class ClientSlots {
  readonly #slots: Slot[] = [];
  readonly #free: number[] = [];
  #inFlightBytes = 0;
  #cancellation = 0;

  constructor() {
    for (let slot = SK_SLOTS_MAX - 1; slot >= 0; slot--) this.#free.push(slot);
    for (let slot = 0; slot < SK_SLOTS_MAX; slot++) this.#slots.push({ seq: 0, pending: undefined, sentNs: 0 });
  }

  /** Slots that are not free. */
  get used(): number {
    return SK_SLOTS_MAX - this.#free.length;
  }

  /** Slots that have {@link GIVEN_UP}. */
  get cancellation(): number {
    return this.#cancellation;
  }

  /** The slot with this number, 0 to SK_SLOTS_MAX - 1. */
  at(slot: number): ClientSlot {
    return this.#slots[slot];
  }

  /** Whether the operation can be under way, too: a slot is free, and at most `bytesMax` are moved, or nothing else is. */
  hasRoomFor(io: SkIo, bytesMax: number): boolean {
    if (this.#free.length === 0) return false;
    return this.#inFlightBytes === 0 || this.#inFlightBytes + bytesMovedBy(io) <= bytesMax;
  }

  /** The operation has a slot from now on, which must be there; its number. */
  take(pending: PendingIo): number {
    const slot = this.#free.pop()!;
    const state = this.#slots[slot];
    state.pending = pending;
    state.seq = (state.seq + 1) >>> 0;
    this.#inFlightBytes += bytesMovedBy(pending.io);
    return slot;
  }

  /** The slot is free again. */
  release(slot: number): void {
    const state = this.#slots[slot];
    this.#inFlightBytes -= bytesMovedBy(state.pending!.io);
    if (state.pending === GIVEN_UP) this.#cancellation--;
    state.pending = undefined;
    this.#free.push(slot);
  }

  /** Nobody waits any more for what is under way; it keeps its slots until it is answered. Returns what was waited for. */
  giveUp(): PendingIo[] {
    const failed: PendingIo[] = [];
    for (const state of this.#slots) {
      if (state.pending === undefined || state.pending === GIVEN_UP) continue;
      failed.push(state.pending);
      this.#inFlightBytes -= bytesMovedBy(state.pending.io);
      state.pending = GIVEN_UP;
      this.#cancellation++;
    }
    return failed;
  }

  /** Frees all slots. Returns what had them. */
  releaseAll(): PendingIo[] {
    const failed: PendingIo[] = [];
    this.#slots.forEach(({ pending }, slot) => {
      if (pending === undefined) return;
      failed.push(pending);
      this.release(slot);
    });
    return failed;
  }

  /** The server has forgotten the session: what is under way is the first of its slot. */
  restart(): void {
    for (const slot of this.#slots) slot.seq = slot.pending === undefined ? 0 : 1;
  }

  /** The slot of a request that was sent `timeoutNs` ago or longer; -1: there is none. */
  findLate(nowNs: number, timeoutNs: number): number {
    return this.#slots.findIndex(({ pending, sentNs }) => pending !== undefined && nowNs - sentNs >= timeoutNs);
  }
}

/** Whether what came with the answer is what the server checked, and as much as was asked for. */
export function arrivedIntact({ op, length }: SkIo, { response, list, data }: SkReply): boolean {
  if (response.status !== 'OK' || (op !== 'READ' && op !== 'STATUS')) return true;
  if (op === 'READ' && data.length !== length) return false;
  return data.length === 0 || firstBadBlock(data, { dataCrc: response.dataCrc, list }) < 0;
}

function bytesMovedBy({ op, length }: SkIo): number {
  return op === 'READ' || op === 'WRITE' ? length : 0;
}
