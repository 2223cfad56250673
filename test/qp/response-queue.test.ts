/** Records of executed READs and atomics, around the wrap of the PSNs. */

import { describe, expect, it } from 'vitest';
import { psnAdd } from '../../src/packet/psn.js';
import {
  RECORD_ATOMIC,
  RECORD_READ,
  type ResponderRecord,
  ResponderRecords,
  ResponseQueue,
} from '../../src/qp/response-queue.js';

function execute(records: ResponderRecords, kind: number, firstPsn: number, psns: number): ResponderRecord {
  const record = records.take();
  record.kind = kind;
  record.firstPsn = firstPsn;
  record.lastPsn = psnAdd(firstPsn, psns - 1);
  return record;
}

describe('records', () => {
  it('of the same PSN, one turn of the sequence space apart: the newer one answers', () => {
    const records = new ResponderRecords(4);
    execute(records, RECORD_ATOMIC, 7, 1);
    const newer = execute(records, RECORD_ATOMIC, 7, 1);
    expect(records.find(RECORD_ATOMIC, 7)).toBe(newer);
    const read = execute(records, RECORD_READ, 5, 10);
    expect(records.find(RECORD_READ, 7)).toBe(read);
    expect(records.find(RECORD_ATOMIC, 7)).toBe(newer);
    const newest = execute(records, RECORD_READ, 6, 2);
    expect(records.find(RECORD_READ, 7)).toBe(newest);
    expect(records.find(RECORD_READ, 5)).toBe(read);
  });
});

describe('the oldest record', () => {
  it('is owed while its first answer waits, however old the PSNs of the others look', () => {
    const records = new ResponderRecords(2);
    const queue = new ResponseQueue(2, 64);
    const owe = (record: ResponderRecord) => {
      const job = queue.append()!;
      job.firstAnswerOf = record;
      job.startPsn = record.firstPsn;
      job.cursorPsn = record.firstPsn;
      job.lastPsn = record.lastPsn;
      return job;
    };
    execute(records, RECORD_READ, 100, 10);
    execute(records, RECORD_READ, 110, 10);
    // 2^24 PSNs later: the answer that waits covers the PSNs of the second record, which is long done with.
    owe(execute(records, RECORD_READ, 50, 400));
    expect(queue.hasFirstAnswerOf(records.oldest!)).toBe(false);
    const last = owe(execute(records, RECORD_READ, 450, 1));
    expect(queue.hasFirstAnswerOf(records.oldest!)).toBe(true);
    queue.popFront();
    expect(queue.hasFirstAnswerOf(records.oldest!)).toBe(false);
    expect(queue.hasFirstAnswerOf(last.firstAnswerOf!)).toBe(true);
  });
});
