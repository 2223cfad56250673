/**
 * In-flight requests of a client's session. A retransmission keeps slot and sequence number, so the server executes it
 * at most once. Sans-IO.
 */

import type { SkReply } from './channel.js';
import { type DataChecks, firstBadBlock, NO_CHECKS } from './data-checks.js';
import { SK_SLOTS_MAX, type SkOp } from './request.js';
import type { WriteVerifierCursor } from './write-verifier-tracker.js';

export interface SkIo {
  readonly op: Exclude<SkOp, 'PING' | 'RESUME'>;
  readonly flags?: number;
  readonly offset: number;
  /** Bytes of data or of the range; 0 for FLUSH. */
  readonly length: number;
  readonly data?: Uint8Array;
  readonly into?: Uint8Array;
  readonly take?: (data: Uint8Array) => void;
  readonly cursor?: WriteVerifierCursor;
}

export interface PendingIo {
  readonly io: SkIo;
  readonly checks: DataChecks;
  readonly changes: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export interface ClientSlot {
  readonly seq: number;
  readonly pending: PendingIo | undefined;
  sentNs: number;
}

interface Slot extends ClientSlot {
  seq: number;
  pending: PendingIo | undefined;
}

/** Occupies the slot of a request that has failed here and may still be executed, until its answer. */
export const ABANDONED: PendingIo = {
  io: { op: 'FLUSH', offset: 0, length: 0 },
  checks: NO_CHECKS,
  changes: 0,
  resolve: () => {},
  reject: () => {},
};

export class ClientSlots {
  readonly #slots: Slot[] = [];
  readonly #free: number[] = [];
  #inFlightBytes = 0;
  #cancellation = 0;

  constructor() {
    for (let slot = SK_SLOTS_MAX - 1; slot >= 0; slot--) this.#free.push(slot);
    for (let slot = 0; slot < SK_SLOTS_MAX; slot++) this.#slots.push({ seq: 0, pending: undefined, sentNs: 0 });
  }

  get used(): number {
    return SK_SLOTS_MAX - this.#free.length;
  }

  get cancellation(): number {
    return this.#cancellation;
  }

  at(slot: number): ClientSlot {
    return this.#slots[slot];
  }

  /**
   * Whether the operation can also be in flight: a slot is free, and at most `bytesMax` are moved, or no other
   * operation is in flight.
   */
  hasRoomFor(io: SkIo, bytesMax: number): boolean {
    if (this.#free.length === 0) return false;
    return this.#inFlightBytes === 0 || this.#inFlightBytes + bytesMovedBy(io) <= bytesMax;
  }

  take(pending: PendingIo): number {
    const slot = this.#free.pop()!;
    const state = this.#slots[slot];
    state.pending = pending;
    state.seq = (state.seq + 1) >>> 0;
    this.#inFlightBytes += bytesMovedBy(pending.io);
    return slot;
  }

  release(slot: number): void {
    const state = this.#slots[slot];
    this.#inFlightBytes -= bytesMovedBy(state.pending!.io);
    if (state.pending === ABANDONED) this.#cancellation--;
    state.pending = undefined;
    this.#free.push(slot);
  }

  /** Requests in flight are abandoned; they keep their slots until they are answered. */
  giveUp(): PendingIo[] {
    const failed: PendingIo[] = [];
    for (const state of this.#slots) {
      if (state.pending === undefined || state.pending === ABANDONED) continue;
      failed.push(state.pending);
      this.#inFlightBytes -= bytesMovedBy(state.pending.io);
      state.pending = ABANDONED;
      this.#cancellation++;
    }
    return failed;
  }

  releaseAll(): PendingIo[] {
    const failed: PendingIo[] = [];
    this.#slots.forEach(({ pending }, slot) => {
      if (pending === undefined) return;
      failed.push(pending);
      this.release(slot);
    });
    return failed;
  }

  /** The server has dropped the session: requests in flight are the first of their slots. */
  restart(): void {
    for (const slot of this.#slots) slot.seq = slot.pending === undefined ? 0 : 1;
  }

  findLate(nowNs: number, timeoutNs: number): number {
    return this.#slots.findIndex(({ pending, sentNs }) => pending !== undefined && nowNs - sentNs >= timeoutNs);
  }
}

export function arrivedIntact({ op, length }: SkIo, { response, list, data }: SkReply): boolean {
  if (response.status !== 'OK' || (op !== 'READ' && op !== 'STATUS')) return true;
  if (op === 'READ' && data.length !== length) return false;
  return data.length === 0 || firstBadBlock(data, { dataCrc: response.dataCrc, list }) < 0;
}

function bytesMovedBy({ op, length }: SkIo): number {
  return op === 'READ' || op === 'WRITE' ? length : 0;
}
