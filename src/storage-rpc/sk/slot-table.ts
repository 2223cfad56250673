/**
 * At-most-once execution (the session and slot model of NFSv4.1, RFC 8881 §2.10.6). A request is identified by its slot
 * and the slot's sequence number, on any connection. The server remembers for each slot the last number, whether it is
 * being executed, and the outcome:
 *
 *     last + 1                 new: execute it
 *     last, being executed     the same again, over a newer connection: it will have the answer
 *     last, executed           answer from memory; a READ, which changes nothing and is large, is executed again
 *     last, abandoned          its data never came: execute it
 *     anything else            the peer is confused: BAD_SEQ, the session is lost
 */

import type { SkStatus } from './response.js';

type Admission = 'new' | 'again' | 'cached' | 'bad_seq';

type SlotState = 'executing' | 'executed' | 'abandoned';

interface Slot {
  lastSeq: number;
  state: SlotState;
  outcome: SkStatus;
}

export class SlotTable {
  readonly #slots: Slot[];

  constructor(slots: number) {
    this.#slots = Array.from({ length: slots }, () => ({ lastSeq: 0, state: 'executed', outcome: 'OK' }));
  }

  /** For 'new' the slot is being executed from here on. */
  admit(slot: number, seq: number, isRead: boolean): Admission {
    const known = this.#slots[slot];
    if (known === undefined) return 'bad_seq';
    if (seq === known.lastSeq) {
      if (known.state === 'executing') return 'again';
      if (known.state === 'executed' && !isRead) return 'cached';
    } else if (seq !== (known.lastSeq + 1) >>> 0 || known.state === 'executing') return 'bad_seq';
    known.lastSeq = seq;
    known.state = 'executing';
    return 'new';
  }

  outcome(slot: number): SkStatus {
    return this.#slots[slot].outcome;
  }

  finish(slot: number, outcome: SkStatus): void {
    this.#slots[slot].state = 'executed';
    this.#slots[slot].outcome = outcome;
  }

  abandon(slot: number): void {
    this.#slots[slot].state = 'abandoned';
  }

  get executing(): number {
    return this.#slots.filter(({ state }) => state === 'executing').length;
  }
}
