/** Bugs that other stacks have had and that need both ends to show: each test would catch its bug here. */

import { describe, expect, it } from 'vitest';
import { createPair, type Pair } from '../../support/pair.js';

function fill(bytes: Uint8Array): void {
  for (let i = 0; i < bytes.length; i++) bytes[i] = (i * 13 + (i >> 8) * 7) & 255;
}

/** Writes `count` messages and waits for all of them. */
function writeMany(pair: Pair, count: number, size: number): void {
  const { a, b } = pair;
  const wcs = [];
  for (let n = 0; n < count; ) {
    while (n < count && a.qp.sendRoom > 0) {
      const offset = (n * size) % (a.mr.length - size);
      a.qp.postSend({
        opcode: 'RDMA_WRITE',
        wrId: n++,
        sges: [a.mr.sge(offset, size)],
        remoteAddr: b.mr.addr + BigInt(offset),
        rkey: b.mr.rkey,
      });
    }
    wcs.push(...pair.completions(a.cq, Math.min(64, n - wcs.length)));
  }
  wcs.push(...pair.completions(a.cq, count - wcs.length));
  expect(wcs.map((wc) => [wc.wrId, wc.status])).toEqual(Array.from({ length: count }, (_, n) => [n, 0]));
}

describe('bug 01: PSN windows across the wrap', () => {
  // Comparing PSNs as integers stalls, or overruns the window, where 0xffffff is followed by 0.
  it.each([0xffff00, 0xffffff, 0, 0x7fff80])('1000 packets from 0x%s on, without a retry', async (startPsnA) => {
    const pair = await createPair({ startPsnA, startPsnB: startPsnA });
    fill(pair.a.mr.bytes);
    writeMany(pair, 250, 4096);
    expect(pair.a.device.counters()).toMatchObject({ tx_retransmitted: 0, local_ack_timeout_err: 0 });
    expect(pair.b.device.counters()).toMatchObject({ out_of_sequence: 0, duplicate_request: 0 });
  });

  it('and with losses', async () => {
    const pair = await createPair({ startPsnA: 0xffff00, faults: 'every=37' });
    fill(pair.a.mr.bytes);
    writeMany(pair, 100, 8192);
    expect(pair.b.mr.bytes.subarray(0, 100 * 8192).equals(pair.a.mr.bytes.subarray(0, 100 * 8192))).toBe(true);
  });
});

describe('bug 03: retransmission on a slow path', () => {
  it('does not happen when nothing is lost, however long it takes', async () => {
    // 10 Mb/s and an acknowledgement timeout of 67 ms: each message takes longer than the timeout.
    const pair = await createPair({ rateBps: 10e6, delayNs: 1e6, attrA: { timeout: 14 } });
    writeMany(pair, 4, 100_000);
    expect(pair.a.device.counters()).toMatchObject({ tx_retransmitted: 0, local_ack_timeout_err: 0 });
    expect(pair.b.device.counters().duplicate_request).toBe(0);
  });
});

describe('bug 06: packets that vanish on the way out', () => {
  it('at every index are made up for, with every byte right', async () => {
    // A rollback that restores only part of the sender's state loses or repeats data at some index.
    const size = 10 * 1024 + 5;
    for (let index = 0; index < 11; index++) {
      for (const opcode of ['RDMA_WRITE', 'SEND', 'RDMA_READ'] as const) {
        const pair = await createPair({ startPsnA: 0xfffff8, faults: `a>b:psn=${(0xfffff8 + index) & 0xffffff}:once` });
        const { a, b } = pair;
        const [from, to] = opcode === 'RDMA_READ' ? [b, a] : [a, b];
        fill(from.mr.bytes);
        b.qp.postRecv({ sges: [b.mr.sge(0, size)] });
        a.qp.postSend({ opcode, sges: [a.mr.sge(0, size)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
        expect(pair.completions(a.cq, 1)).toMatchObject([{ status: 0 }]);
        expect(to.mr.bytes.subarray(0, size).equals(from.mr.bytes.subarray(0, size))).toBe(true);
        expect(to.mr.bytes.subarray(size).every((byte) => byte === 0)).toBe(true);
        if (opcode === 'SEND') expect(pair.completions(b.recvCq, 1)).toMatchObject([{ status: 0, byteLen: size }]);
      }
    }
  });
});

describe('bug 14: an atomic whose answer is lost', () => {
  it('counts once', async () => {
    const pair = await createPair({ faults: 'opcode=ATOMIC_ACKNOWLEDGE:x3' });
    const { a, b } = pair;
    for (let n = 0; n < 5; n++) {
      a.qp.postSend({
        opcode: 'ATOMIC_FETCH_AND_ADD',
        add: 1n,
        sges: [a.mr.sge(8 * n, 8)],
        remoteAddr: b.mr.addr,
        rkey: b.mr.rkey,
      });
    }
    expect(pair.completions(a.cq, 5).map((wc) => wc.status)).toEqual([0, 0, 0, 0, 0]);
    expect([0, 1, 2, 3, 4].map((n) => a.mr.bytes.readBigUInt64LE(8 * n))).toEqual([0n, 1n, 2n, 3n, 4n]);
    expect(b.mr.bytes.readBigUInt64LE(0)).toBe(5n);
    expect(b.device.counters().rx_atomic_requests).toBe(5);
  });
});

describe('bug 02 and 27: receiver not ready with more in flight', () => {
  it('costs one resend per wait: 655 ms with an acknowledgement timeout of 67 ms', async () => {
    const pair = await createPair({ attrB: { minRnrTimer: 0 } });
    const { a, b } = pair;
    for (let n = 0; n < 5; n++) a.qp.postSend({ opcode: 'SEND', wrId: n, sges: [a.mr.sge(0, 100)] });
    pair.run({ untilNs: 600e6 });
    expect(a.device.counters()).toMatchObject({ tx_data_packets: 5, rnr_nak_received: 1, local_ack_timeout_err: 0 });
    for (let n = 0; n < 5; n++) b.qp.postRecv({ wrId: n, sges: [b.mr.sge(0, 100)] });
    expect(pair.completions(a.cq, 5).map((wc) => wc.status)).toEqual([0, 0, 0, 0, 0]);
    expect(a.device.counters().tx_data_packets).toBe(10);
    expect(pair.events.nowNs).toBeGreaterThan(655.36e6);
  });
});
