/**
 * Answers that the responder has pending: READ responses of many packets and atomic results, oldest first. Also the
 * records of the last requests that were executed for them, from which a repeated request is answered again (IBTA vol.
 * 1 §9.7.5.1.2, "responder resources").
 */

import { MemoryRange } from '../memory/memory-range.js';
import { psnAdd, psnDiff, psnInRange } from '../packet/psn.js';

export const RECORD_READ = 1;
export const RECORD_ATOMIC = 2;
/** FLUSH or ATOMIC WRITE: its answer has no data. */
export const RECORD_PLACEMENT = 3;

export class ResponderRecord {
  kind = 0;
  firstPsn = 0;
  lastPsn = 0;
  rkey = 0;
  vaHigh = 0;
  vaLow = 0;
  lengthBytes = 0;
  origHigh = 0;
  origLow = 0;
}

export class ResponderRecords {
  #ring: ResponderRecord[];
  #next = 0;

  constructor(capacity: number) {
    this.#ring = Array.from({ length: capacity }, () => new ResponderRecord());
  }

  resize(capacity: number): void {
    const oldestFirst = [...this.#ring.slice(this.#next), ...this.#ring.slice(0, this.#next)];
    const kept = oldestFirst.slice(Math.max(0, oldestFirst.length - capacity));
    const added = Array.from({ length: capacity - kept.length }, () => new ResponderRecord());
    this.#ring = [...added, ...kept];
    this.#next = 0;
  }

  /** The record that the next request will take; undefined when the QP accepts none. */
  get oldest(): ResponderRecord | undefined {
    return this.#ring[this.#next];
  }

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

export class ResponseJob {
  kind = 0;
  startPsn = 0;
  cursorPsn = 0;
  lastPsn = 0;
  msn = 0;
  lengthBytes = 0;
  readonly range = new MemoryRange();
  origHigh = 0;
  origLow = 0;
  /** Undefined: the request was repeated, and its packets count as retransmissions. */
  firstAnswerOf: ResponderRecord | undefined;

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

/** Bounded by the agreed number, but grows only as needed: many queue pairs never receive a READ. */
export class ResponseQueue {
  #ring: ResponseJob[] = [];
  #head = 0;
  readonly #replaysMax: number;
  #capacity: number;
  count = 0;

  /** `replaysMax`: repeated requests that may wait beyond the original ones; more are dropped. */
  constructor(maxDestRdAtomic: number, replaysMax: number) {
    this.#replaysMax = replaysMax;
    this.#capacity = maxDestRdAtomic + replaysMax;
  }

  /** Reserves space for that many original requests at a time. It never shrinks, because some requests may wait. */
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

  get front(): ResponseJob | undefined {
    return this.count === 0 ? undefined : this.#ring[this.#head];
  }

  get isFull(): boolean {
    return this.count === this.#capacity;
  }

  /** A job to fill in at the end, or undefined when the queue is full. */
  append(): ResponseJob | undefined {
    if (this.isFull) return undefined;
    if (this.count === this.#ring.length) this.#grow();
    this.count++;
    return this.#at(this.count - 1);
  }

  popFront(): void {
    this.#head = (this.#head + 1) % this.#ring.length;
    this.count--;
  }

  clear(): void {
    this.count = 0;
  }

  covers(first: number, last: number): boolean {
    for (let k = 0; k < this.count; k++) {
      const job = this.#at(k);
      if (psnDiff(job.cursorPsn, last) <= 0 && psnDiff(job.lastPsn, first) >= 0) return true;
    }
    return false;
  }

  /** Repeated ones do not count: the requester may have received the answer and sent a new request. */
  hasFirstAnswerOf(record: ResponderRecord): boolean {
    for (let k = 0; k < this.count; k++) if (this.#at(k).firstAnswerOf === record) return true;
    return false;
  }

  /**
   * Pending answers to other requests stay: the request may have been repeated only because the network was slow, and
   * then the others are not repeated.
   */
  insert(first: number, last: number): ResponseJob | undefined {
    if (this.count + 2 > this.#capacity) return undefined; // Itself, and the remainder of a job that it splits.
    let k = 0;
    while (k < this.count && psnDiff(this.#at(k).lastPsn, first) < 0) k++;
    if (k < this.count && psnDiff(this.#at(k).cursorPsn, first) < 0) this.#cut(k++, first);
    while (k < this.count && psnDiff(this.#at(k).lastPsn, last) <= 0) this.#remove(k);
    if (k < this.count && psnDiff(this.#at(k).cursorPsn, last) <= 0) this.#at(k).cursorPsn = psnAdd(last, 1);
    return this.#open(k);
  }

  /** Makes two of job `k`: its packets before `psn`, then those from there on. */
  #cut(k: number, psn: number): void {
    const rest = this.#open(k + 1);
    const job = this.#at(k);
    rest.copyFrom(job);
    rest.cursorPsn = psn;
    job.lastPsn = psnAdd(psn, -1);
  }

  /** A free job at index `k`; later jobs move back by one. */
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
