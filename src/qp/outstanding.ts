/**
 * Accounts of the send queue: which work requests are in flight, which PSNs they have, and their progress.
 *
 *      retired      in flight                    not started
 *   ------------|======================|------------------------|
 *              head        cursor    started                 producer     (WQE indices)
 *            unacked       sendPsn   newPsn                               (PSNs)
 *
 * head <= cursor <= started. The cursor is where sending continues: it is at `started` except after a rewind. READs,
 * atomics, FLUSH and ATOMIC WRITE take a slot of `reads` each until their response is complete.
 */

import { RD_ATOMIC_MAX } from '../memory/ring/attribute-ranges.js';
import { psnAdd, psnDiff } from '../packet/psn.js';
import type { SenderRecovery } from '../retransmit/recovery.js';

export const KIND_DATA = 0;
export const KIND_READ = 1;
export const KIND_ATOMIC = 2;
/** Local operation: no packet, no PSN. */
export const KIND_LOCAL = 3;
/** FLUSH or ATOMIC WRITE: one PSN, and a READ response without data answers it. */
export const KIND_PLACEMENT = 4;

const READ_SLOTS_USUAL = 16;

/**
 * READ and atomic requests on the wire, oldest first, as PSN ranges: at most max_rd_atomic, which may change on the
 * way.
 */
export class ReadSlots {
  #first = new Uint32Array(READ_SLOTS_USUAL);
  #last = new Uint32Array(READ_SLOTS_USUAL);
  #head = 0;
  count = 0;

  clear(): void {
    this.count = 0;
  }

  push(first: number, last: number): void {
    if (this.count === this.#first.length) this.#grow();
    const i = (this.#head + this.count) % this.#first.length;
    this.#first[i] = first;
    this.#last[i] = last;
    this.count++;
  }

  #grow(): void {
    const inOrder = (ring: Uint32Array) => {
      const grown = new Uint32Array(RD_ATOMIC_MAX);
      for (let k = 0; k < this.count; k++) grown[k] = ring[(this.#head + k) % ring.length];
      return grown;
    };
    this.#first = inOrder(this.#first);
    this.#last = inOrder(this.#last);
    this.#head = 0;
  }

  trim(unacked: number): void {
    while (this.count > 0 && psnDiff(this.#last[this.#head], unacked) < 0) {
      this.#head = (this.#head + 1) % this.#first.length;
      this.count--;
    }
  }

  dropFrom(psn: number): void {
    while (this.count > 0) {
      const i = (this.#head + this.count - 1) % this.#first.length;
      if (psnDiff(this.#first[i], psn) < 0) return;
      this.count--;
    }
  }

  hasStart(psn: number): boolean {
    for (let k = 0; k < this.count; k++) {
      if (this.#first[(this.#head + k) % this.#first.length] === psn) return true;
    }
    return false;
  }

  /** Last PSN of the request that holds `psn`, or -1: then it was never requested. */
  endOf(psn: number): number {
    for (let k = 0; k < this.count; k++) {
      const i = (this.#head + k) % this.#first.length;
      if (psnDiff(psn, this.#first[i]) >= 0 && psnDiff(psn, this.#last[i]) <= 0) return this.#last[i];
    }
    return -1;
  }
}

/** PSNs are 24-bit numbers that wrap; indices count WQEs modulo 2^32. */
export class Outstanding {
  /** Depth of the send queue less one: the slot of a WQE is its index & mask. */
  readonly mask: number;
  head = 0;
  cursor = 0;
  /** Index after the newest WQE that has PSNs. */
  started = 0;
  /** The oldest PSN that is not acknowledged. */
  unacked = 0;
  sendPsn = 0;
  /** The PSN that has never been sent. */
  newPsn = 0;
  readonly reads = new ReadSlots();
  readonly firstPsn: Uint32Array;
  readonly lastPsn: Uint32Array;
  readonly kind: Uint8Array;

  constructor(depth: number) {
    this.mask = depth - 1;
    this.firstPsn = new Uint32Array(depth);
    this.lastPsn = new Uint32Array(depth);
    this.kind = new Uint8Array(depth);
  }

  /** Starts again: nothing is in flight, the next PSN is `psn`, the next WQE is at `index`. */
  reset(psn: number, index: number): void {
    this.head = index;
    this.cursor = index;
    this.started = index;
    this.unacked = psn;
    this.sendPsn = psn;
    this.newPsn = psn;
    this.reads.clear();
  }

  /** PSNs sent and not acknowledged, with the cursor where it is. */
  get inFlight(): number {
    return psnDiff(this.sendPsn, this.unacked);
  }

  get isIdle(): boolean {
    return this.head === this.started;
  }

  start(kind: number, psnCount: number): void {
    const i = this.started & this.mask;
    this.kind[i] = kind;
    this.firstPsn[i] = this.newPsn;
    this.lastPsn[i] = psnAdd(this.newPsn, psnCount - 1);
    this.started = (this.started + 1) >>> 0;
  }

  startLocal(): void {
    this.start(KIND_LOCAL, 0);
  }

  kindOf(index: number): number {
    return this.kind[index & this.mask];
  }

  /** Local operations hold no PSN. */
  find(psn: number, from: number): number {
    for (let index = from; index !== this.started; index = (index + 1) >>> 0) {
      const i = index & this.mask;
      if (this.kind[i] === KIND_LOCAL) continue;
      if (psnDiff(psn, this.lastPsn[i]) <= 0) return psnDiff(psn, this.firstPsn[i]) >= 0 ? index : -1;
    }
    return -1;
  }

  /** Moves the cursor to `psn`, which is in flight or the next new PSN. */
  moveCursor(psn: number): void {
    const index = this.find(psn, this.head);
    this.cursor = index < 0 ? this.started : index;
    this.sendPsn = psn;
  }

  /** False if an unanswered READ or atomic is before its end: its response was lost. */
  acknowledge(psn: number, recovery: SenderRecovery): boolean {
    for (let index = this.head; index !== this.started && psnDiff(psn, this.unacked) >= 0; index = (index + 1) >>> 0) {
      const i = index & this.mask;
      const kind = this.kind[i];
      const last = this.lastPsn[i];
      if (kind === KIND_LOCAL || psnDiff(this.unacked, last) > 0) continue;
      // A READ that is covered to its end: its answer can no longer arrive. Covered in part: no conclusion.
      if (kind !== KIND_DATA) return psnDiff(psn, last) < 0;
      this.unacked = recovery.advance(psnAdd(psnDiff(psn, last) < 0 ? psn : last, 1));
    }
    return true;
  }

  /** The answer to the oldest outstanding PSN, of a READ or atomic, has been placed. */
  answer(): void {
    this.unacked = psnAdd(this.unacked, 1);
  }

  /**
   * Packets after `unacked` that the scheme knows to be done count as acknowledged, and pending retransmissions that
   * have arrived are skipped.
   */
  advance(recovery: SenderRecovery): void {
    this.unacked = recovery.advance(this.unacked);
    if (psnDiff(this.unacked, this.sendPsn) > 0) this.moveCursor(this.unacked);
    this.reads.trim(this.unacked);
  }

  /** Before `unacked` only for schemes that restart messages. */
  goBack(psn: number): void {
    if (psnDiff(psn, this.unacked) < 0) {
      this.unacked = psn;
      this.reads.dropFrom(psn);
    }
    this.moveCursor(psn);
  }

  /** `psns` PSNs from `sendPsn` on, of the WQE at the cursor, have been sent. */
  sent(psns: number): void {
    this.sendPsn = psnAdd(this.sendPsn, psns);
    if (psnDiff(this.sendPsn, this.newPsn) > 0) this.newPsn = this.sendPsn;
    if (psnDiff(this.sendPsn, this.lastPsn[this.cursor & this.mask]) > 0) this.passCursor();
  }

  passCursor(): void {
    this.cursor = (this.cursor + 1) >>> 0;
  }

  /** True when everything of the WQE at `index` is acknowledged; of a local operation, always. */
  isDone(index: number): boolean {
    const i = index & this.mask;
    return this.kind[i] === KIND_LOCAL || psnDiff(this.unacked, this.lastPsn[i]) > 0;
  }

  removeHead(): void {
    // A local operation was executed when it was started; after a rewind the cursor may still be before it.
    if (this.kind[this.head & this.mask] === KIND_LOCAL && this.head === this.cursor) this.passCursor();
    this.head = (this.head + 1) >>> 0;
  }
}
