/**
 * Answers that the responder has pending: READ responses of many packets and atomic results, oldest first. And the records of the READs and
 * atomics it executed last, from which a repeated request is answered again (IBTA vol. 1 §9.7.5.1.2, "responder resources").
 */

import { MemoryRange } from '../memory/memory-range.js';
import { psnAdd, psnDiff, psnInRange } from '../packet/psn.js';

/** {@link ResponderRecord.kind}: a READ. */
export const RECORD_READ = 1;
/** {@link ResponderRecord.kind}: COMPARE_SWAP or FETCH_ADD. */
export const RECORD_ATOMIC = 2;

/** A READ or atomic that was executed. */
export class ResponderRecord {
  /** RECORD_READ or RECORD_ATOMIC; 0: never used. */
  kind = 0;
  /** PSN of the request. */
  firstPsn = 0;
  /** PSN of its last response. */
  lastPsn = 0;
  /** READ: the key it named. */
  rkey = 0;
  /** READ: upper half of the address it named. */
  vaHigh = 0;
  /** READ: lower half of the address it named. */
  vaLow = 0;
  /** READ: bytes it asked for. */
  lengthBytes = 0;
  /** The atomic's result: the value before. */
  origHigh = 0;
  /** Atomic: lower half of the value before it. */
  origLow = 0;
}

/** The last `max_dest_rd_atomic` records, recycled in order. */
export class ResponderRecords {
  #ring: ResponderRecord[];
  #next = 0;

  constructor(capacity: number) {
    this.#ring = Array.from({ length: capacity }, () => new ResponderRecord());
  }

  /** Changes the capacity; the newest records stay. */
  resize(capacity: number): void {
    const oldestFirst = [...this.#ring.slice(this.#next), ...this.#ring.slice(0, this.#next)];
    const kept = oldestFirst.slice(Math.max(0, oldestFirst.length - capacity));
    const added = Array.from({ length: capacity - kept.length }, () => new ResponderRecord());
    this.#ring = [...added, ...kept];
    this.#next = 0;
  }

  /** The record that the next READ or atomic will take; undefined when the QP accepts none. */
  get oldest(): ResponderRecord | undefined {
    return this.#ring[this.#next];
  }

  /** Recycles the oldest record. */
  take(): ResponderRecord {
    const record = this.#ring[this.#next];
    this.#next = (this.#next + 1) % this.#ring.length;
    return record;
  }

  /** Newest first: a record may be so old that its PSNs are in use for the second time. */
  find(kind: number, psn: number): ResponderRecord | undefined {
    const { length } = this.#ring;
    for (let age = 1; age <= length; age++) {
      const record = this.#ring[(this.#next + length - age) % length];
      if (record.kind === kind && psnInRange(psn, record.firstPsn, record.lastPsn)) return record;
    }
    return undefined;
  }
}

/** An answer being sent. */
export class ResponseJob {
  /** RECORD_READ or RECORD_ATOMIC. */
  kind = 0;
  /** PSN of its first packet. */
  startPsn = 0;
  /** The next PSN to send. */
  cursorPsn = 0;
  /** PSN of its last packet. */
  lastPsn = 0;
  /** MSN that its packets carry. */
  msn = 0;
  /** READ: bytes in all. */
  lengthBytes = 0;
  /** READ: where they stand. */
  readonly range = new MemoryRange();
  /** Atomic: upper half of the result. */
  origHigh = 0;
  /** Atomic: lower half of the result. */
  origLow = 0;
  /** The record this is the first answer of. Undefined: the request was repeated, and its packets count as retransmissions. */
  firstAnswerOf: ResponderRecord | undefined;

  /** Makes it the same answer as `other`. */
  copyFrom(other: ResponseJob): void {
    this.kind = other.kind;
    this.startPsn = other.startPsn;
    this.cursorPsn = other.cursorPsn;
    this.lastPsn = other.lastPsn;
    this.msn = other.msn;
    this.lengthBytes = other.lengthBytes;
    this.range.copyFrom(other.range);
    this.origHigh = other.origHigh;
    this.origLow = other.origLow;
    this.firstAnswerOf = other.firstAnswerOf;
  }
}

/** Bounded by what was agreed, but holds no more than was ever needed: many queue pairs are never read from. */
export class ResponseQueue {
  #ring: ResponseJob[] = [];
  #head = 0;
  readonly #replaysMax: number;
  #capacity: number;
  /** Answers pending. */
  count = 0;

  /** `replaysMax`: repeated requests that may wait beyond the original ones; more are dropped. */
  constructor(maxDestRdAtomic: number, replaysMax: number) {
    this.#replaysMax = replaysMax;
    this.#capacity = maxDestRdAtomic + replaysMax;
  }

  /** Makes room for that many original requests at a time; never less than there was, because some may wait. */
  resize(maxDestRdAtomic: number): void {
    this.#capacity = Math.max(this.#capacity, maxDestRdAtomic + this.#replaysMax);
  }

  #grow(): void {
    this.#ring = [...this.#ring.slice(this.#head), ...this.#ring.slice(0, this.#head), new ResponseJob()];
    this.#head = 0;
  }

  #at(k: number): ResponseJob {
    return this.#ring[(this.#head + k) % this.#ring.length];
  }

  /** The oldest answer; undefined when none is pending. */
  get front(): ResponseJob | undefined {
    return this.count === 0 ? undefined : this.#ring[this.#head];
  }

  /** A job to fill in at the end, or undefined when the queue is full. */
  append(): ResponseJob | undefined {
    if (this.count === this.#capacity) return undefined;
    if (this.count === this.#ring.length) this.#grow();
    this.count++;
    return this.#at(this.count - 1);
  }

  /** The oldest answer has left. */
  popFront(): void {
    this.#head = (this.#head + 1) % this.#ring.length;
    this.count--;
  }

  /** Nothing is to be answered any more. */
  clear(): void {
    this.count = 0;
  }

  /** True while any of [first, last] is still to be sent. */
  covers(first: number, last: number): boolean {
    for (let k = 0; k < this.count; k++) {
      const job = this.#at(k);
      if (psnDiff(job.cursorPsn, last) <= 0 && psnDiff(job.lastPsn, first) >= 0) return true;
    }
    return false;
  }

  /** True while the record's first answer waits. Repeated ones do not count: the requester may have had it and asked for something new. */
  hasFirstAnswerOf(record: ResponderRecord): boolean {
    for (let k = 0; k < this.count; k++) if (this.#at(k).firstAnswerOf === record) return true;
    return false;
  }

  /**
   * A job to fill in for the repeated request of [first, last]: it takes the place of what is pending of these PSNs, in order. Answers owed to other
   * requests stay: a request may be repeated because the network was slow with it, and then nobody asks for them again. Undefined when
   * the queue is full.
   */
  insert(first: number, last: number): ResponseJob | undefined {
    if (this.count + 2 > this.#capacity) return undefined; // Itself, and what is left behind it of a job that it cuts in two.
    let k = 0;
    while (k < this.count && psnDiff(this.#at(k).lastPsn, first) < 0) k++;
    if (k < this.count && psnDiff(this.#at(k).cursorPsn, first) < 0) this.#cut(k++, first);
    while (k < this.count && psnDiff(this.#at(k).lastPsn, last) <= 0) this.#remove(k);
    if (k < this.count && psnDiff(this.#at(k).cursorPsn, last) <= 0) this.#at(k).cursorPsn = psnAdd(last, 1);
    return this.#open(k);
  }

  /** Makes two of job `k`: its packets before `psn`, and behind it those from there on. */
  #cut(k: number, psn: number): void {
    const rest = this.#open(k + 1);
    const job = this.#at(k);
    rest.copyFrom(job);
    rest.cursorPsn = psn;
    job.lastPsn = psnAdd(psn, -1);
  }

  /** A free job at place `k`; those from there on move back by one. */
  #open(k: number): ResponseJob {
    if (this.count === this.#ring.length) this.#grow();
    const free = this.#at(this.count);
    for (let i = this.count; i > k; i--) this.#place(i, this.#at(i - 1));
    this.#place(k, free);
    this.count++;
    return free;
  }

  #remove(k: number): void {
    const removed = this.#at(k);
    this.count--;
    for (let i = k; i < this.count; i++) this.#place(i, this.#at(i + 1));
    this.#place(this.count, removed);
  }

  #place(k: number, job: ResponseJob): void {
    this.#ring[(this.#head + k) % this.#ring.length] = job;
  }
}
