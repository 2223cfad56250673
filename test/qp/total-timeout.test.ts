/** The total retransmission timeout: a silence is measured in time, with timeouts that grow, instead of being counted in retries. */

import { describe, expect, it } from 'vitest';
import type { QpAttr } from '../../src/verbs/qp-attributes.js';
import { LoneNic } from '../support/lone-nic.js';

const MS = 1e6;
const SECOND = 1e9;
/** timeout 14: 67.1 ms. */
const TIMEOUT_NS = 4096 * 2 ** 14;
/** totalTimeout 22: 17.2 s. */
const TOTAL_NS = 4096 * 2 ** 22;
const PATIENT: QpAttr = { totalTimeout: 22, retryCnt: 7 };

/** A NIC that has sent `count` one-packet SENDs, wr_id = PSN. */
async function withSends(count: number, attr: QpAttr) {
  const nic = await LoneNic.create({ attr });
  for (let wrId = 0; wrId < count; wrId++) nic.qp.postSend({ opcode: 'SEND', wrId, sges: [nic.mr.sge(0, 8)] });
  expect(nic.take()).toHaveLength(count);
  return nic;
}

/** The waits before each repetition, in units of the first timeout. */
function waits(times: readonly number[]): number[] {
  return times.map((timeNs, i) => (timeNs - (times[i - 1] ?? 0)) / TIMEOUT_NS);
}

describe('while nothing is heard', () => {
  it('timeouts double up to a sixteenth of the total; the queue pair gives up when the total has passed', async () => {
    const nic = await withSends(1, PATIENT);
    const repeated = nic.advance(TOTAL_NS - 1).map(({ timeNs }) => timeNs);
    expect(waits(repeated)).toEqual([1, 2, 4, 8, ...Array(15).fill(16)]);
    expect(nic.done()).toEqual([]);
    nic.advance(1);
    expect(nic.done()).toMatchObject([{ wrId: 0, statusName: 'RETRY_EXC_ERR' }]);
    expect(await nic.state()).toBe('ERR');
    expect(nic.device.counters()).toMatchObject({ local_ack_timeout_err: 20, retry_exceeded_err: 1 });
  });

  it('twin: without a total the standard counts: 8 timeouts of one length, 0.54 s', async () => {
    const nic = await withSends(1, { retryCnt: 7 });
    const repeated = nic.advance(8 * TIMEOUT_NS).map(({ timeNs }) => timeNs);
    expect(waits(repeated)).toEqual(Array(7).fill(1));
    expect(nic.done()).toMatchObject([{ wrId: 0, statusName: 'RETRY_EXC_ERR' }]);
  });

  it('a peer that answers after ten seconds finds the connection alive, whatever retry_cnt says', async () => {
    const nic = await withSends(2, { ...PATIENT, retryCnt: 1 });
    nic.advance(10 * SECOND);
    nic.ack(1);
    expect(nic.done()).toMatchObject([{ status: 0 }, { status: 0 }]);
    expect(await nic.state()).toBe('RTS');
  });

  it('a path that was cut for ten seconds is tried again within 1.1 s of its repair', async () => {
    const nic = await withSends(1, PATIENT);
    nic.advance(10 * SECOND);
    expect(nic.advance(1.1 * SECOND)).toHaveLength(1);
  });
});

describe('progress', () => {
  it('makes the next timeout short again, and the total start anew', async () => {
    const nic = await withSends(2, PATIENT);
    nic.advance(12 * SECOND);
    nic.ack(0);
    expect(nic.advance(TIMEOUT_NS - 1)).toEqual([]);
    expect(nic.advance(1)).toMatchObject([{ at: 1 }]);
    nic.advance(12 * SECOND);
    expect(await nic.state()).toBe('RTS');
    nic.advance(TOTAL_NS);
    expect(nic.done()).toMatchObject([{ status: 0 }, { wrId: 1, statusName: 'RETRY_EXC_ERR' }]);
  });

  it('stale acknowledgements are none', async () => {
    const nic = await withSends(2, PATIENT);
    nic.ack(0);
    for (let n = 0; n < 20; n++) {
      nic.advance(SECOND);
      nic.ack(0);
    }
    expect(nic.done()).toMatchObject([{ status: 0 }, { wrId: 1, statusName: 'RETRY_EXC_ERR' }]);
  });

  it('a receiver that is not ready is alive: its answer makes the total start anew', async () => {
    const nic = await withSends(1, { ...PATIENT, rnrRetry: 7 });
    for (let n = 0; n < 3; n++) {
      nic.advance(12 * SECOND);
      nic.ack(0, 0x21);
    }
    expect(await nic.state()).toBe('RTS');
  });

  it('sequence NAKs are none: a peer that asks for one packet for ever is given up, too', async () => {
    const nic = await withSends(1, PATIENT);
    for (let n = 0; n < 20; n++) {
      nic.ack(0, 0x60);
      nic.advance(SECOND);
    }
    expect(nic.done()).toMatchObject([{ wrId: 0, statusName: 'RETRY_EXC_ERR' }]);
  });

  it('sequence NAKs are still counted by retry_cnt', async () => {
    const nic = await withSends(1, { ...PATIENT, retryCnt: 0 });
    nic.ack(0, 0x60);
    expect(nic.done()).toMatchObject([{ wrId: 0, statusName: 'RETRY_EXC_ERR' }]);
  });
});

describe('a clock that jumps', () => {
  it.each([
    ['with a total', PATIENT],
    ['as the standard counts', { retryCnt: 7 }],
  ])('by 60 s, as that of a machine that was suspended, costs one timeout: %s', async (_, attr) => {
    const nic = await withSends(1, attr);
    nic.advance(TIMEOUT_NS / 2);
    nic.jump(60 * SECOND);
    expect(nic.take()).toMatchObject([{ at: 0 }]);
    expect(nic.device.counters().local_ack_timeout_err).toBe(1);
    nic.ack(0);
    expect(nic.done()).toMatchObject([{ status: 0 }]);
  });
});

describe('changed while connected', () => {
  it('to 0, when the peer is known to be gone: what is awaited fails after the timeouts of the standard', async () => {
    const nic = await withSends(1, PATIENT);
    nic.advance(9 * SECOND);
    await nic.qp.modify({ totalTimeout: 0 });
    nic.advance(8 * TIMEOUT_NS);
    expect(nic.done()).toMatchObject([{ wrId: 0, statusName: 'RETRY_EXC_ERR' }]);
  });

  it('to more: the connection waits longer', async () => {
    const nic = await withSends(1, PATIENT);
    nic.advance(9 * SECOND);
    await nic.qp.modify({ totalTimeout: 24 });
    nic.advance(50 * SECOND);
    nic.ack(0);
    expect(nic.done()).toMatchObject([{ status: 0 }]);
  });

  it('is told by query', async () => {
    const nic = await LoneNic.create({ attr: PATIENT });
    expect(await nic.qp.query()).toMatchObject({ totalTimeout: 22 });
  });

  it.each([-1, 32, 1.5])('%d is refused', async (totalTimeout) => {
    const nic = await LoneNic.create();
    await expect(nic.qp.modify({ totalTimeout })).rejects.toMatchObject({ code: 'ERR_ROCE_OUT_OF_RANGE' });
  });
});

it('without an ACK timeout nothing ends a silence', async () => {
  const nic = await withSends(1, { ...PATIENT, timeout: 0 });
  expect(nic.advance(100 * SECOND)).toEqual([]);
  expect(await nic.state()).toBe('RTS');
});

it('an ACK timeout longer than the total is kept', async () => {
  const nic = await withSends(1, { timeout: 16, totalTimeout: 10 });
  expect(nic.advance(268 * MS)).toEqual([]);
  nic.advance(MS);
  expect(nic.done()).toMatchObject([{ statusName: 'RETRY_EXC_ERR' }]);
});
