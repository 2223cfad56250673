/** Retries: acknowledgement timeouts, sequence NAKs, receiver-not-ready waits, and the budgets of each. */

import { describe, expect, it } from 'vitest';
import { RNR_TIMER_NS } from '../../src/packet/aeth.js';
import { psnAdd } from '../../src/packet/psn.js';
import type { QpAttr } from '../../src/verbs/qp-attributes.js';
import type { SendWorkRequest } from '../../src/verbs/send-work-request.js';
import { LoneNic, MTU, pattern, SQ_START } from '../support/lone-nic.js';
import { runToRest } from '../support/virtual-time.js';

const MS = 1e6;
/** timeout 14. */
const ACK_TIMEOUT_NS = 4096 * 2 ** 14;
const REMOTE = { remoteAddr: 0x1000n, rkey: 1 };
const send = (nic: LoneNic, wrId: number, size = 8): SendWorkRequest => ({
  opcode: 'SEND',
  wrId,
  sges: [nic.mr.sge(0, size)],
});

/** A NIC that has sent `count` one-packet SENDs, wr_id = PSN. */
async function withSends(count: number, attr: QpAttr = {}) {
  const nic = await LoneNic.create({ attr });
  for (let n = 0; n < count; n++) nic.qp.postSend(send(nic, n));
  expect(nic.take()).toHaveLength(count);
  return nic;
}

describe('the acknowledgement timer', () => {
  it('fires at 4.096 us x 2^timeout after the packet, not before', async () => {
    const nic = await withSends(1);
    expect(nic.advance(ACK_TIMEOUT_NS - 1)).toEqual([]);
    expect(nic.advance(1)).toMatchObject([{ name: 'SEND_ONLY', at: 0, timeNs: ACK_TIMEOUT_NS }]);
  });

  it('begins when its packets have left, where their batch was held up', async () => {
    const SCHEDULING_DELAY_MIN_NS = 100 * MS;
    const nic = await withSends(9);
    nic.host.nic.onSchedulingDelay(nic.nowNs, SCHEDULING_DELAY_MIN_NS);
    expect(nic.advance(ACK_TIMEOUT_NS + SCHEDULING_DELAY_MIN_NS - 1)).toEqual([]);
    expect(nic.device.counters().local_ack_timeout_err).toBe(0);
    expect(nic.advance(1)).toHaveLength(9);
    expect(nic.device.counters().local_ack_timeout_err).toBe(1);
    // What was sent again left at once.
    expect(nic.advance(ACK_TIMEOUT_NS)).toHaveLength(9);
  });

  it('does not wait for batches of another time, nor for one that many were held up after', async () => {
    const nic = await LoneNic.create();
    nic.host.nic.onSchedulingDelay(nic.nowNs, 100 * MS);
    for (let i = 1; i <= 16; i++) nic.host.nic.onSchedulingDelay(nic.nowNs + i, 100 * MS);
    nic.qp.postSend(send(nic, 0));
    expect(nic.take()).toHaveLength(1);
    expect(nic.advance(ACK_TIMEOUT_NS)).toHaveLength(1);
  });

  it('goes back to the oldest PSN that is not acknowledged and sends everything from there', async () => {
    const nic = await withSends(4);
    nic.ack(1);
    expect(nic.advance(ACK_TIMEOUT_NS).map((packet) => packet.at)).toEqual([2, 3]);
  });

  it('makes the first packet ask what has arrived, which none in the middle of a message did', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend(send(nic, 1, 4 * MTU));
    const asks = (packets: ReturnType<LoneNic['take']>) => packets.map(({ at, ackReq }) => [at, ackReq]);
    const last = [3, true];
    expect(asks(nic.take())).toEqual([[0, false], [1, false], [2, false], last]);
    expect(asks(nic.advance(ACK_TIMEOUT_NS))).toEqual([[0, true], [1, false], [2, false], last]);
  });

  it('with timeout 0 never fires', async () => {
    const nic = await withSends(1, { timeout: 0 });
    expect(nic.advance(3600e9)).toEqual([]);
    nic.ack(0);
    expect(nic.done()).toMatchObject([{ status: 0 }]);
  });

  it('rests when everything is acknowledged', async () => {
    const nic = await withSends(1);
    nic.ack(0);
    expect(nic.advance(1e12)).toEqual([]);
    expect(nic.device.counters().local_ack_timeout_err).toBe(0);
  });

  it('bug 03: progress pushes it out; a slow peer sees no packet twice', async () => {
    // A timer that keeps its first deadline would resend although acknowledgements keep coming.
    const nic = await withSends(20);
    for (let n = 0; n < 20; n++) {
      expect(nic.advance(ACK_TIMEOUT_NS * 0.9)).toEqual([]);
      nic.ack(n);
    }
    expect(nic.advance(1e9)).toEqual([]);
    expect(nic.device.counters()).toMatchObject({ tx_retransmitted: 0, local_ack_timeout_err: 0 });
  });

  it('is pushed out by READ responses as well', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend({ opcode: 'RDMA_READ', sges: [nic.mr.sge(0, 10 * MTU)], ...REMOTE });
    nic.take();
    for (let k = 0; k < 10; k++) {
      expect(nic.advance(ACK_TIMEOUT_NS * 0.9)).toEqual([]);
      nic.response(
        k === 0 ? 'RDMA_READ_RESPONSE_FIRST' : k < 9 ? 'RDMA_READ_RESPONSE_MIDDLE' : 'RDMA_READ_RESPONSE_LAST',
        k,
        {},
        pattern(MTU),
      );
    }
    expect(nic.done()).toMatchObject([{ status: 0 }]);
  });

  it('is not pushed out by acknowledgements that say nothing new', async () => {
    const nic = await withSends(2);
    nic.ack(0);
    nic.advance(ACK_TIMEOUT_NS / 2);
    nic.ack(0);
    expect(nic.advance(ACK_TIMEOUT_NS / 2)).toMatchObject([{ at: 1 }]);
  });
});

describe('resuming', () => {
  it('starts the acknowledgement timer anew with what is sent again, also where the NAK acknowledged nothing', async () => {
    const nic = await withSends(3);
    nic.advance(ACK_TIMEOUT_NS / 2);
    nic.ack(0, 0x60);
    expect(nic.take().map(({ at }) => at)).toEqual([0, 1, 2]);
    expect(nic.advance(ACK_TIMEOUT_NS - 1)).toEqual([]);
    expect(nic.advance(1).map(({ at }) => at)).toEqual([0, 1, 2]);
  });

  it('inside a SEND and a WRITE goes on with MIDDLE and LAST, without a RETH', async () => {
    for (const opcode of ['SEND', 'RDMA_WRITE'] as const) {
      const nic = await LoneNic.create();
      pattern(3 * MTU).copy(nic.mr.bytes);
      nic.qp.postSend({ opcode, sges: [nic.mr.sge(0, 3 * MTU)], ...REMOTE });
      const first = nic.take();
      nic.ack(1, 0x60);
      const again = nic.take();
      expect(again.map((p) => [p.name, p.at])).toEqual([
        [`${opcode}_MIDDLE`, 1],
        [`${opcode}_LAST`, 2],
      ]);
      expect(again.map((p) => p.payload)).toEqual(first.slice(1).map((p) => p.payload));
    }
  });

  it('inside a READ asks for the rest: whole path MTUs further, PSNs of what follows unchanged', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend({ opcode: 'RDMA_READ', sges: [nic.mr.sge(0, 3 * MTU + 7)], ...REMOTE }, send(nic, 2));
    expect(nic.take().map((p) => p.at)).toEqual([0, 4]);
    nic.response('RDMA_READ_RESPONSE_FIRST', 0, {}, pattern(MTU));
    nic.response('RDMA_READ_RESPONSE_MIDDLE', 1, {}, pattern(MTU));
    expect(nic.advance(ACK_TIMEOUT_NS)).toMatchObject([
      { name: 'RDMA_READ_REQUEST', at: 2, va: REMOTE.remoteAddr + BigInt(2 * MTU), dmaLength: MTU + 7 },
      { name: 'SEND_ONLY', at: 4 },
    ]);
  });

  it('sends an atomic again as it was', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend({ opcode: 'ATOMIC_CMP_AND_SWP', compare: 1n, swap: 2n, sges: [nic.mr.sge(0, 8)], ...REMOTE });
    const [first] = nic.take();
    const [again] = nic.advance(ACK_TIMEOUT_NS);
    expect({ ...again, timeNs: 0 }).toEqual({ ...first, timeNs: 0 });
  });

  it('stops where the acknowledgement of the first copies arrives meanwhile', async () => {
    const nic = await LoneNic.create({ attr: { inflightPackets: 8 } });
    nic.host.connect((batch) => nic.nowNs + batch.count * 1000); // One packet a microsecond, not recorded.
    for (let n = 0; n < 8; n++) nic.qp.postSend(send(nic, n));
    runToRest(nic.events, { untilNs: ACK_TIMEOUT_NS + 1500 }); // The timer has fired and two packets are out again.
    const before = nic.device.counters().tx_packets;
    nic.ack(7);
    runToRest(nic.events, { untilNs: nic.nowNs + 1e6 });
    expect(nic.device.counters().tx_packets - before).toBeLessThanOrEqual(1);
    expect(nic.done()).toHaveLength(8);
  });
});

describe('retry_cnt', () => {
  it.each([0, 1, 2, 7])('%i: so many retries after the first try, then RETRY_EXC_ERR', async (retryCnt) => {
    const nic = await withSends(1, { retryCnt });
    let retries = 0;
    for (let n = 0; n < 10; n++) retries += nic.advance(ACK_TIMEOUT_NS).length;
    expect(retries).toBe(retryCnt);
    expect(nic.done()).toMatchObject([{ wrId: 0, status: 12, statusName: 'RETRY_EXC_ERR', vendorError: SQ_START }]);
    expect(await nic.state()).toBe('ERR');
    expect(nic.device.counters()).toMatchObject({ local_ack_timeout_err: retryCnt + 1, retry_exceeded_err: 1 });
  });

  it('the completion names the oldest PSN that was not acknowledged', async () => {
    const nic = await withSends(3, { retryCnt: 0 });
    nic.ack(1);
    nic.advance(10 * ACK_TIMEOUT_NS);
    expect(nic.done().at(2)).toMatchObject({ wrId: 2, status: 12, vendorError: psnAdd(SQ_START, 2) });
  });

  it('is used up by sequence NAKs without progress in between, one by one through timeouts', async () => {
    const nic = await withSends(2, { retryCnt: 2 });
    nic.ack(0, 0x60);
    expect(nic.take()).toHaveLength(2);
    expect(nic.advance(ACK_TIMEOUT_NS)).toHaveLength(2);
    nic.advance(ACK_TIMEOUT_NS);
    expect(nic.done()).toMatchObject([
      { wrId: 0, status: 12 },
      { wrId: 1, status: 5 },
    ]);
  });

  it('0: the first sequence NAK ends it', async () => {
    const nic = await withSends(1, { retryCnt: 0 });
    nic.ack(0, 0x60);
    expect(nic.done()).toMatchObject([{ wrId: 0, status: 12 }]);
  });

  it('0: an implied NAK ends it', async () => {
    const nic = await LoneNic.create({ attr: { retryCnt: 0 } });
    nic.qp.postSend({ opcode: 'RDMA_READ', wrId: 1, sges: [nic.mr.sge(0, 8)], ...REMOTE }, send(nic, 2));
    nic.take();
    nic.ack(1);
    expect(nic.done()).toMatchObject([
      { wrId: 1, status: 12 },
      { wrId: 2, status: 5 },
    ]);
  });

  it('is granted anew by progress', async () => {
    const nic = await withSends(30, { retryCnt: 1 });
    for (let n = 0; n < 29; n++) {
      expect(nic.advance(ACK_TIMEOUT_NS)).toHaveLength(30 - n);
      nic.ack(n);
    }
    expect(nic.done()).toHaveLength(29);
    expect(await nic.state()).toBe('RTS');
  });

  it('bug 28: stale acknowledgements are no progress: they do not keep a dead connection alive', async () => {
    // Reloading the budget on every ACK received would retry for ever while the data goes nowhere.
    const nic = await withSends(3, { retryCnt: 3 });
    nic.ack(0);
    for (let n = 0; n < 20; n++) {
      nic.advance(ACK_TIMEOUT_NS / 4);
      nic.ack(0);
      nic.ack(-5);
    }
    expect(nic.done()).toMatchObject([
      { wrId: 0, status: 0 },
      { wrId: 1, status: 12 },
      { wrId: 2, status: 5 },
    ]);
  });
});

describe('one retry at a time', () => {
  it('further NAKs for the same gap do not restart it', async () => {
    const nic = await withSends(3);
    nic.ack(1, 0x60);
    expect(nic.take().map((p) => p.at)).toEqual([1, 2]);
    nic.ack(1, 0x60);
    nic.ack(1, 0x60);
    expect(nic.take()).toEqual([]);
    expect(nic.device.counters().packet_seq_err).toBe(3);
  });

  it('a NAK after progress starts the next', async () => {
    const nic = await withSends(3);
    nic.ack(1, 0x60);
    nic.take();
    nic.ack(2, 0x60);
    expect(nic.take().map((p) => p.at)).toEqual([2]);
  });

  it('a timeout may start it over', async () => {
    const nic = await withSends(2);
    nic.ack(0, 0x60);
    nic.take();
    expect(nic.advance(ACK_TIMEOUT_NS).map((p) => p.at)).toEqual([0, 1]);
  });
});

describe('a receiver that is not ready', () => {
  it.each(RNR_TIMER_NS.map((_, code) => code))(
    'with timer code %i gets the packet again after that time, not before',
    async (code) => {
      const nic = await withSends(1);
      nic.ack(0, 0x20 | code);
      expect(nic.advance(RNR_TIMER_NS[code] - 1)).toEqual([]);
      expect(nic.advance(1)).toMatchObject([{ name: 'SEND_ONLY', at: 0 }]);
    },
  );

  it('bug 26: code 25 is 61.44 ms', () => {
    // The table of another stack says 61.41.
    expect(RNR_TIMER_NS[25]).toBe(61.44 * MS);
    expect(RNR_TIMER_NS.map((ns) => ns / MS)).toEqual([
      655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28, 1.92, 2.56, 3.84,
      5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
    ]);
  });

  it('completes what stands before the packet', async () => {
    const nic = await withSends(3);
    nic.ack(2, 0x2c);
    expect(nic.done().map((wc) => wc.wrId)).toEqual([0, 1]);
    expect(nic.advance(0.64 * MS).map((p) => p.at)).toEqual([2]);
  });

  it.each([0, 1, 3, 6])('rnr_retry %i: so many waits, then RNR_RETRY_EXC_ERR', async (rnrRetry) => {
    const nic = await withSends(1, { rnrRetry });
    for (let n = 0; n < rnrRetry; n++) {
      nic.ack(0, 0x21);
      expect(nic.advance(0.01 * MS)).toHaveLength(1);
    }
    expect(nic.done()).toEqual([]);
    nic.ack(0, 0x21);
    expect(nic.done()).toMatchObject([{ wrId: 0, status: 13, statusName: 'RNR_RETRY_EXC_ERR', vendorError: 0x21 }]);
    expect(await nic.state()).toBe('ERR');
    expect(nic.device.counters().rnr_nak_retry_err).toBe(1);
  });

  it('rnr_retry 7 has no end', async () => {
    const nic = await withSends(1, { rnrRetry: 7 });
    for (let n = 0; n < 200; n++) {
      nic.ack(0, 0x21);
      expect(nic.advance(0.01 * MS)).toHaveLength(1);
    }
    nic.ack(0);
    expect(nic.done()).toMatchObject([{ status: 0 }]);
  });

  it('the budget is granted anew by progress', async () => {
    const nic = await withSends(5, { rnrRetry: 1 });
    for (let n = 0; n < 5; n++) {
      nic.ack(n, 0x21);
      nic.advance(0.01 * MS);
    }
    nic.ack(4);
    expect(nic.done().map((wc) => wc.status)).toEqual([0, 0, 0, 0, 0]);
  });

  it('costs no retry_cnt', async () => {
    const nic = await withSends(1, { retryCnt: 0, rnrRetry: 7 });
    for (let n = 0; n < 5; n++) {
      nic.ack(0, 0x21);
      nic.advance(0.01 * MS);
    }
    nic.ack(0);
    expect(nic.done()).toMatchObject([{ status: 0 }]);
  });

  it('bug 02: the wait is not cut short by the acknowledgement timer', async () => {
    // One flag for both timers made the resend leave after 67 ms although the receiver asked for 655.
    const nic = await withSends(2);
    nic.ack(0, 0x20);
    expect(nic.advance(655.36 * MS - 1)).toEqual([]);
    expect(nic.device.counters().local_ack_timeout_err).toBe(0);
    expect(nic.advance(1).map((p) => p.at)).toEqual([0, 1]);
  });

  it('bug 27: the wait is not cut short by a sequence NAK, nor by a second RNR NAK', async () => {
    // The packets behind the refused one were in flight already; what they provoke must not restart the sender.
    const nic = await withSends(3);
    nic.ack(0, 0x2c);
    nic.ack(0, 0x60);
    nic.ack(0, 0x21);
    expect(nic.advance(0.64 * MS - 1)).toEqual([]);
    expect(nic.advance(1).map((p) => p.at)).toEqual([0, 1, 2]);
  });

  it('bug 27: a sequence NAK during the wait costs no retry', async () => {
    const nic = await withSends(2, { retryCnt: 0 });
    nic.ack(0, 0x2c);
    nic.ack(0, 0x60);
    expect(nic.advance(0.64 * MS).map((p) => p.at)).toEqual([0, 1]);
    expect(nic.done()).toEqual([]);
  });

  it('work requests posted during the wait are sent after it', async () => {
    const nic = await withSends(1);
    nic.ack(0, 0x2c);
    nic.qp.postSend(send(nic, 1));
    expect(nic.take()).toEqual([]);
    expect(nic.advance(0.64 * MS).map((p) => p.at)).toEqual([0, 1]);
  });

  it('the acknowledgement timer runs again after the wait', async () => {
    const nic = await withSends(1);
    nic.ack(0, 0x2c);
    expect(nic.advance(0.64 * MS)).toHaveLength(1);
    expect(nic.advance(ACK_TIMEOUT_NS)).toHaveLength(1);
  });

  it('an RNR NAK about anything but the oldest request is ignored', async () => {
    const nic = await withSends(2);
    nic.ack(0);
    nic.ack(0, 0x2c);
    nic.qp.postSend(send(nic, 2));
    expect(nic.take()).toMatchObject([{ at: 2 }]);
  });

  it('resumes a WRITE with immediate at its last packet alone', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend({ opcode: 'RDMA_WRITE_WITH_IMM', immediate: 9, sges: [nic.mr.sge(0, 3 * MTU)], ...REMOTE });
    nic.take();
    nic.ack(2, 0x21);
    expect(nic.advance(0.01 * MS)).toMatchObject([{ name: 'RDMA_WRITE_LAST_WITH_IMMEDIATE', at: 2, immediate: 9 }]);
  });
});
