/**
 * Forged congestion notifications: whoever knows addresses, port and QPN of a flow can send CNPs in the name of its receiver. What no packet
 * of the flow can have caused is not heeded, and honest congestion is heeded meanwhile (IBTA annex A17.9.3).
 */

import { describe, expect, it } from 'vitest';
import type { RateControlOptions } from '../../src/dcqcn/rate-controls.js';
import { Bottleneck } from '../dcqcn/bottleneck.js';
import { LoneNic } from '../support/lone-nic.js';

const GBPS = 1e9;
const LINE_BPS = 10 * GBPS;
const FLOOR_BPS = 10e6;
const US = 1000;
const DCQCN = { name: 'dcqcn', linkRateBps: LINE_BPS } as const satisfies RateControlOptions;
const interrupt = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Two flows through a link. */
function bottleneck(rateBps: number): Promise<Bottleneck> {
  const queue = { delayNs: 4_000, kminBytes: 5_000, kmaxBytes: 200_000, pmax: 0.01 };
  return Bottleneck.create({ flows: [DCQCN, DCQCN], rateBps, messageBytes: 8 << 20, ...queue });
}

/** CNPs for the first flow, evenly, from now on. */
function flood(link: Bottleneck, perSecond: number): void {
  link.notify(0);
  link.events.after(1e9 / perSecond, () => flood(link, perSecond));
}

describe('a flood of forged notifications', () => {
  it('does not hold its victim at the floor; it is counted, its source is named once, other flows are not touched', async () => {
    const link = await bottleneck(100 * GBPS);
    const told: unknown[] = [];
    link.sender.events.on('CNP_SUSPICIOUS', (qp, peer) => told.push([qp.qpn, peer.text]));
    link.run(1);
    flood(link, 100_000);
    link.run(10);
    const [victim, honest] = link.run(10);
    expect(victim).toBeGreaterThan(100 * FLOOR_BPS);
    expect(honest).toBeGreaterThan(0.99 * LINE_BPS);
    await interrupt();
    expect(told).toEqual([[link.senders[0].qpn, link.receiver.address.text]]);
    const { rp_cnp_suspicious, rp_cnp_handled } = link.sender.counters();
    expect(rp_cnp_suspicious).toBeGreaterThan(rp_cnp_handled);
  });

  it('does not make its victim deaf to honest congestion: another flow keeps its share', async () => {
    const link = await bottleneck(LINE_BPS);
    link.run(1);
    flood(link, 100_000);
    link.run(10);
    const [, honest] = link.run(10);
    expect(honest).toBeGreaterThan(0.45 * LINE_BPS);
  });

  it('the twin: without it both flows have their share, and nothing is suspicious', async () => {
    const link = await bottleneck(LINE_BPS);
    link.run(20);
    const shares = link.run(20);
    for (const share of shares) expect(share).toBeGreaterThan(0.35 * LINE_BPS);
    expect(link.sender.counters().rp_cnp_suspicious).toBe(0);
    expect(link.sender.counters().rp_cnp_handled).toBeGreaterThan(10);
  });
});

describe('a notification', () => {
  const sendOne = (nic: LoneNic) => {
    nic.qp.postSend({ opcode: 'SEND' });
    nic.take();
  };
  const rateBps = async (nic: LoneNic) => (await nic.qp.query()).rateBps;
  const dcqcn = () => LoneNic.create({ attr: { rateControl: DCQCN, timeout: 0 } });

  it('for a queue pair that has sent nothing is not heeded', async () => {
    const nic = await dcqcn();
    nic.congestionNotification();
    expect(await rateBps(nic)).toBe(LINE_BPS);
    expect(nic.device.counters()).toMatchObject({ rp_cnp_handled: 0, rp_cnp_suspicious: 1 });
    sendOne(nic);
    nic.congestionNotification();
    expect(await rateBps(nic)).toBe(LINE_BPS / 2);
  });

  it.each([
    [1.9e9, 1, 0],
    [2.1e9, 0, 1],
  ])('%i ns after the last packet: heeded %i, suspicious %i', async (ns, handled, suspicious) => {
    const nic = await dcqcn();
    sendOne(nic);
    nic.advance(ns);
    nic.congestionNotification();
    expect(nic.device.counters()).toMatchObject({ rp_cnp_handled: handled, rp_cnp_suspicious: suspicious });
  });

  it('cuts once in 25 us by default, however many come', async () => {
    const nic = await dcqcn();
    for (let n = 0; n < 100; n++) sendOne(nic);
    for (let n = 0; n < 100; n++) {
      nic.congestionNotification();
      nic.advance(1 * US);
    }
    expect(nic.device.counters()).toMatchObject({ rp_cnp_handled: 4, rp_cnp_ignored: 96 });
  });

  it('without ECT on its packets a queue pair heeds none, and calls none suspicious', async () => {
    const nic = await LoneNic.create();
    sendOne(nic);
    nic.congestionNotification();
    expect(nic.device.counters()).toMatchObject({ rp_cnp_handled: 0, rp_cnp_ignored: 1, rp_cnp_suspicious: 0 });
  });
});
