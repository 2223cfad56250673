/** Which packets are measured, and what counts as their round trip. */

import { describe, expect, it } from 'vitest';
import { createRttProbe } from '../../src/qp/rtt-probe.js';
import { LoneNic, MTU } from '../support/lone-nic.js';

describe('a probe', () => {
  it('measures from sending to acknowledgement, also when a later packet is what is acknowledged', () => {
    const probe = createRttProbe(100);
    probe.onSent(0xffffff, 100, true, 1000);
    probe.onSent(0, 100, false, 2000);
    expect(probe.onProgress(0xffffff, 5000)).toBe(-1);
    expect(probe.onProgress(1, 6000)).toBe(5000);
    expect(probe.onProgress(1, 7000)).toBe(-1);
  });

  it('takes the newest of several that one acknowledgement covers', () => {
    const probe = createRttProbe(100);
    probe.onSent(1, 100, true, 1000);
    probe.onSent(2, 100, true, 4000);
    expect(probe.onProgress(3, 9000)).toBe(5000);
  });

  it('wants so many bytes between two samples, and an acknowledgement asked for', () => {
    const probe = createRttProbe(100);
    probe.onSent(1, 60, true, 1000);
    expect([probe.isDue(39), probe.isDue(40)]).toEqual([false, true]);
    probe.onSent(2, 60, false, 2000);
    expect(probe.isDue(1)).toBe(true);
    probe.onSent(3, 60, true, 3000);
    expect(probe.isDue(60)).toBe(false);
    expect(probe.onProgress(4, 9000)).toBe(6000);
  });

  it('forgets what may be acknowledged for its second copy', () => {
    const probe = createRttProbe(100);
    probe.onSent(1, 100, true, 1000);
    probe.cancel();
    expect(probe.onProgress(2, 5000)).toBe(-1);
  });

  it('measures no more packets at a time than it has room for', () => {
    const probe = createRttProbe(1);
    for (let psn = 0; psn < 300; psn++) probe.onSent(psn, 1, true, psn);
    expect(probe.onProgress(300, 1000)).toBe(1000 - 255);
  });

  it('with 0 has one packet at a time: the first that leaves after the last one was acknowledged', () => {
    const probe = createRttProbe(0);
    expect(probe.isDue(1)).toBe(true);
    probe.onSent(1, 100, true, 1000);
    expect(probe.isDue(1e9)).toBe(false);
    probe.onSent(2, 100, true, 2000);
    expect(probe.onProgress(3, 5000)).toBe(4000);
    expect(probe.isDue(1)).toBe(true);
    probe.onSent(3, 100, true, 6000);
    expect(probe.onProgress(4, 9000)).toBe(3000);
  });

  it('that nobody wants measures nothing', () => {
    const probe = createRttProbe(Number.POSITIVE_INFINITY);
    probe.onSent(1, 1e9, true, 0);
    expect([probe.isDue(1e9), probe.onProgress(2, 5)]).toEqual([false, -1]);
  });
});

describe('a queue pair under TIMELY', () => {
  const timely = { name: 'timely', segmentBytes: 4 * MTU, initialRateBps: 1e9, lowRttNs: 30_000 } as const;

  it('asks for an acknowledgement once a segment, and gives the round trip to the rate control', async () => {
    const nic = await LoneNic.create({ attr: { rateControl: timely } });
    nic.qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 12 * MTU)] });
    const sent = nic.advance(50_000);
    expect(sent.filter((packet) => packet.ackReq).map((packet) => packet.at)).toEqual([3, 7, 11]);
    nic.ack(3); // Above Tlow, flat: one step up.
    expect((await nic.qp.query()).rateBps).toBeCloseTo(1.01e9, 3);
  });

  it('does not take a repeated packet for a fast one', async () => {
    const nic = await LoneNic.create({ attr: { rateControl: timely } });
    nic.qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 6 * MTU)] });
    nic.advance(50_000);
    nic.ack(0, 0x60); // NAK: everything again.
    nic.advance(1000);
    nic.ack(4);
    expect((await nic.qp.query()).rateBps).toBe(1e9);
  });
});
