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

import { psnAdd, psnDiff } from '../packet/psn.js';

export const KIND_DATA = 0; // SEND and WRITE: acknowledged by ACKs
export const KIND_READ = 1; // acknowledged by its responses only
export const KIND_ATOMIC = 2; // acknowledged by its response only
export const KIND_LOCAL = 3; // no packet

/** READs and atomics one QP may have outstanding in either direction: the upper bound of max_rd_atomic and max_dest_rd_atomic. */
export const RD_ATOMIC_MAX = 128;

/** Room to begin with. */
const READ_SLOTS_USUAL = 16;

/** READ and atomic requests on the wire, oldest first, as PSN ranges: at most max_rd_atomic, which may change on the way. */
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

  /** Last PSN of the request that holds `psn`, or -1: then it was never asked for. */
  endOf(psn: number): number {
    for (let k = 0; k < this.count; k++) {
      const i = (this.#head + k) % this.#first.length;
      if (psnDiff(psn, this.#first[i]) >= 0 && psnDiff(psn, this.#last[i]) <= 0) return this.#last[i];
    }
    return -1;
  }
}

export class Outstanding {
  readonly mask: number;
  head = 0;
  cursor = 0;
  started = 0;
  unacked = 0;
  sendPsn = 0;
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

  /** Gives the WQE at `started` its PSNs. */
  start(kind: number, psnCount: number): void {
    const i = this.started & this.mask;
    this.kind[i] = kind;
    this.firstPsn[i] = this.newPsn;
    this.lastPsn[i] = psnAdd(this.newPsn, psnCount - 1);
    this.started = (this.started + 1) >>> 0;
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
}
