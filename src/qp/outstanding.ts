/**
 * Accounts of the send queue: which work requests are in flight, which PSNs they took, and how far they got.
 *
 *      retired      in flight                    not started
 *   ------------|======================|------------------------|
 *              head        cursor    started                 producer     (WQE indices)
 *            unacked       sendPsn   newPsn                               (PSNs)
 *
 * head <= cursor <= started. The cursor is where sending goes on: it stands at `started` except after a rewind. READs and atomics take a
 * slot of `reads` each until their response is complete.
 */

import { RD_ATOMIC_MAX } from '../memory/ring/attribute-ranges.js';
import { psnAdd, psnDiff } from '../packet/psn.js';
import type { SenderRecovery } from '../retransmit/recovery.js';

/** SEND and WRITE: acknowledged by ACKs. */
export const KIND_DATA = 0;
/** READ: acknowledged by its responses only. */
export const KIND_READ = 1;
/** Atomic: acknowledged by its response only. */
export const KIND_ATOMIC = 2;
/** Local operation: no packet, no PSN. */
export const KIND_LOCAL = 3;

/** Room to begin with. */
const READ_SLOTS_USUAL = 16;

/** READ and atomic requests on the wire, oldest first, as PSN ranges: at most max_rd_atomic, which may change on the way. */
export class ReadSlots {
  #first = new Uint32Array(READ_SLOTS_USUAL);
  #last = new Uint32Array(READ_SLOTS_USUAL);
  #head = 0;
  /** Requests on the wire. */
  count = 0;

  /** Nothing is on the wire. */
  clear(): void {
    this.count = 0;
  }

  /** A request for the responses [first, last] has been sent. */
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

  /** Forgets requests whose responses all lie before `unacked`. */
  trim(unacked: number): void {
    while (this.count > 0 && psnDiff(this.#last[this.#head], unacked) < 0) {
      this.#head = (this.#head + 1) % this.#first.length;
      this.count--;
    }
  }

  /** Forgets requests from `psn` on. */
  dropFrom(psn: number): void {
    while (this.count > 0) {
      const i = (this.#head + this.count - 1) % this.#first.length;
      if (psnDiff(this.#first[i], psn) < 0) return;
      this.count--;
    }
  }

  /** A request on the wire begins with this PSN. */
  hasStart(psn: number): boolean {
    for (let k = 0; k < this.count; k++) {
      if (this.#first[(this.#head + k) % this.#first.length] === psn) return true;
    }
    return false;
  }

  /** Last PSN of the request that holds `psn`, or -1: then it was never asked for. */
  endOf(psn: number): number {
    for (let k = 0; k < this.count; k++) {
      const i = (this.#head + k) % this.#first.length;
      if (psnDiff(psn, this.#first[i]) >= 0 && psnDiff(psn, this.#last[i]) <= 0) return this.#last[i];
    }
    return -1;
  }
}

/** The accounts of one send queue. PSNs are 24-bit numbers that wrap; indices count WQEs modulo 2^32. */
export class Outstanding {
  /** Depth of the send queue less one: the slot of a WQE is its index & mask. */
  readonly mask: number;
  /** Index of the oldest WQE that is not complete. */
  head = 0;
  /** Index of the WQE where sending goes on. */
  cursor = 0;
  /** Index behind the newest WQE that has PSNs. */
  started = 0;
  /** The oldest PSN that is not acknowledged. */
  unacked = 0;
  /** The PSN that is sent next, new or again. */
  sendPsn = 0;
  /** The PSN that has never been sent. */
  newPsn = 0;
  /** READs and atomics on the wire. */
  readonly reads = new ReadSlots();
  /** First PSN of each WQE, by slot. */
  readonly firstPsn: Uint32Array;
  /** Last PSN of each WQE, by slot. */
  readonly lastPsn: Uint32Array;
  /** KIND_* of each WQE, by slot. */
  readonly kind: Uint8Array;

  constructor(depth: number) {
    this.mask = depth - 1;
    this.firstPsn = new Uint32Array(depth);
    this.lastPsn = new Uint32Array(depth);
    this.kind = new Uint8Array(depth);
  }

  /** Starts anew: nothing is in flight, the next PSN is `psn`, the next WQE stands at `index`. */
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

  /** Everything that was started is complete. */
  get isIdle(): boolean {
    return this.head === this.started;
  }

  /** Gives the WQE at `started` its PSNs. */
  start(kind: number, psnCount: number): void {
    const i = this.started & this.mask;
    this.kind[i] = kind;
    this.firstPsn[i] = this.newPsn;
    this.lastPsn[i] = psnAdd(this.newPsn, psnCount - 1);
    this.started = (this.started + 1) >>> 0;
  }

  /** Gives the WQE at `started` no PSN: it was executed at once. */
  startLocal(): void {
    this.start(KIND_LOCAL, 0);
  }

  /** Kind of the WQE at `index`. */
  kindOf(index: number): number {
    return this.kind[index & this.mask];
  }

  /** The in-flight WQE that holds `psn`, searched from `from`; -1 when none does. Local operations hold no PSN. */
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

  /**
   * Acknowledges SEND and WRITE PSNs up to and including `psn`. False when an unanswered READ or atomic stands before its end: its
   * response was lost.
   */
  acknowledge(psn: number, recovery: SenderRecovery): boolean {
    for (let index = this.head; index !== this.started && psnDiff(psn, this.unacked) >= 0; index = (index + 1) >>> 0) {
      const i = index & this.mask;
      const kind = this.kind[i];
      const last = this.lastPsn[i];
      if (kind === KIND_LOCAL || psnDiff(this.unacked, last) > 0) continue;
      // A READ covered to its end or beyond: the answer cannot come any more. Covered in part: says nothing.
      if (kind !== KIND_DATA) return psnDiff(psn, last) < 0;
      this.unacked = recovery.advance(psnAdd(psnDiff(psn, last) < 0 ? psn : last, 1));
    }
    return true;
  }

  /** The answer to the oldest outstanding PSN, of a READ or atomic, has been placed. */
  answer(): void {
    this.unacked = psnAdd(this.unacked, 1);
  }

  /** What the scheme knows to be done behind `unacked` counts as acknowledged, and what was to be sent again but has arrived is passed over. */
  advance(recovery: SenderRecovery): void {
    this.unacked = recovery.advance(this.unacked);
    if (psnDiff(this.unacked, this.sendPsn) > 0) this.moveCursor(this.unacked);
    this.reads.trim(this.unacked);
  }

  /** Sending goes on at `psn`. Behind `unacked` only for schemes that restart messages. */
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

  /** The cursor goes on to the next WQE. */
  passCursor(): void {
    this.cursor = (this.cursor + 1) >>> 0;
  }

  /** True when everything of the WQE at `index` is acknowledged; of a local operation, always. */
  isDone(index: number): boolean {
    const i = index & this.mask;
    return this.kind[i] === KIND_LOCAL || psnDiff(this.unacked, this.lastPsn[i]) > 0;
  }

  /** The oldest WQE is done: it leaves the accounts. */
  removeHead(): void {
    // A local operation was executed when it was started; after a rewind the cursor may have yet to pass it.
    if (this.kind[this.head & this.mask] === KIND_LOCAL && this.head === this.cursor) this.passCursor();
    this.head = (this.head + 1) >>> 0;
  }
}
