/**
 * RCCC against a second model of it: the credit of all senders together is the rate of the link, the queue behind a burst drains, and shares are equal. Beside it the twin without the pacer, a receiver that grants what
 * is asked for, whose queue grows.
 */

import { describe, expect, it } from 'vitest';
import { CREDIT_PACKETS, CreditScheduler, type CreditTaker } from '../../src/dcqcn/credit-scheduler.js';
import { defineRateControl, type RateControl } from '../../src/dcqcn/rate-control.js';
import { rateControlSettings, registerRateControl } from '../../src/dcqcn/rate-controls.js';
import { Rccc, rccc } from '../../src/dcqcn/rccc.js';
import { IntEcho } from '../../src/packet/int-trailer.js';
import { writeIncast } from '../support/write-incast.js';

const RATE_BPS = 40e9;
const RTT_NS = 5000;
const MTU = 1024;
/** Bytes that a packet is worth: payload, BTH, ICRC, trailer, UDP, IPv4, Ethernet with preamble, check sequence and gap. */
const PACKET_BYTES = MTU + 12 + 4 + 12 + 8 + 20 + 14 + 24;
const SETTINGS = { linkRateBps: RATE_BPS, baseRttNs: RTT_NS, packetBytes: MTU } as const;

const control = (more: object = {}) =>
  new Rccc(
    rateControlSettings({ name: 'rccc', ...SETTINGS, ...more }) as never as ConstructorParameters<typeof Rccc>[0],
  );

describe('a sender', () => {
  const echo = (granted: number, received: number) => Object.assign(new IntEcho(), { granted, received });
  const windowAfter = (rate: RateControl, granted: number, received: number) => {
    rate.onEcho(1, RTT_NS, echo(granted, received), 0);
    return rate.windowBytes(0);
  };

  it('begins with the unsolicited window, and then has what is granted and has not arrived', () => {
    const rate = control();
    expect(rate.windowBytes(0)).toBe((1.5 * RATE_BPS * RTT_NS) / 8e9);
    for (const [granted, received] of [
      [10, 3],
      [11, 10],
      [0x1_0000_0002 % 2 ** 32, 0xffff_fffe],
    ]) {
      expect(windowAfter(rate, granted, received)).toBe(((granted - received + 2 ** 32) % 2 ** 32) * MTU);
    }
  });

  it('has never more than the unsolicited window, whatever a receiver grants, and a packet where all credit has arrived', () => {
    const rate = control();
    const most = rate.windowBytes(0);
    expect(windowAfter(rate, 0x7fff_ffff, 0)).toBe(most);
    for (const received of [5, 6, 0x7fff_ffff]) expect(windowAfter(rate, 5, received)).toBe(MTU);
  });
});

describe('the pacer', () => {
  const T = 100;
  const LEAD = 1000;

  class Taker implements CreditTaker {
    readonly packetNs = T;
    granted = 0;
    wanted: number;
    constructor(wanted: number) {
      this.wanted = wanted;
    }
    grant(packets: number): void {
      this.granted += packets;
      this.wanted -= packets;
    }
  }

  it('gives each its turn, and all together one packet each T behind the first round trip', () => {
    const scheduler = new CreditScheduler();
    const takers = Array.from({ length: 7 }, () => new Taker(1000));
    for (const taker of takers) scheduler.join(taker, LEAD, 0);
    const total = () => takers.reduce((sum, { granted }) => sum + granted, 0);
    for (let now = 0; now <= 100_000; now = scheduler.dueNs) {
      scheduler.onDue(now, LEAD);
      // The bound of the docstring, and from below: nothing is held back.
      expect(total()).toBeLessThanOrEqual((now + LEAD) / T + CREDIT_PACKETS);
      expect(total()).toBeGreaterThan((now + LEAD) / T);
      const shares = takers.map(({ granted }) => granted);
      expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(CREDIT_PACKETS);
    }
  });

  it('grants no more than is wanted, and pauses for what came without credit', () => {
    const scheduler = new CreditScheduler();
    const [one, other] = [new Taker(2), new Taker(9)];
    scheduler.join(one, 0, 0);
    scheduler.join(other, 0, 0);
    for (let now = 0; now < 1e6; now = scheduler.dueNs) scheduler.onDue(now, 0);
    expect([one.granted, other.granted, scheduler.dueNs]).toEqual([2, 9, Number.POSITIVE_INFINITY]);
    scheduler.charge(50 * T, 0, 1e6);
    other.wanted = 1;
    scheduler.join(other, 0, 1e6);
    expect(scheduler.dueNs).toBe(1e6 + 50 * T);
  });

  it('makes up for a late timer as far as it may, and forgets who has left', () => {
    const scheduler = new CreditScheduler();
    const [one, other] = [new Taker(1e6), new Taker(1e6)];
    scheduler.join(one, 0, 0);
    scheduler.join(other, 0, 0);
    scheduler.leave(other);
    scheduler.onDue(1e6, 50 * T);
    expect(one.granted).toBeLessThanOrEqual(50 + 2 * CREDIT_PACKETS);
    expect(one.granted).toBeGreaterThanOrEqual(50);
    expect(other.granted).toBe(0);
  });
});

/** The same sender, and a receiver that has no scheduler. */
registerRateControl(
  defineRateControl({
    name: 'rccc-without-pacer',
    summary: 'grants what is asked for',
    parameters: rccc.parameters,
    create: (parameters) => Object.assign(new Rccc(parameters), { creditRateBps: 0 }),
  }),
);

function incast(senders: number, name: string, more: Partial<Parameters<typeof writeIncast>[0]> = {}) {
  return writeIncast({
    senders,
    bytes: 256 * 1024,
    rateBps: RATE_BPS,
    delayNs: 1000,
    mtu: MTU,
    recovery: 'multipath',
    rateControl: { name, ...SETTINGS } as never,
    sampleNs: 1000,
    switchConfig: { queuePackets: 4096, bufferPackets: 65_536 },
    ...more,
  });
}

describe('eight senders into one port', () => {
  const SENDERS = 8;
  const BDP_BYTES = (RATE_BPS * RTT_NS) / 8e9;
  /** What all may send unsolicited, and how long the port needs for it. */
  const BURST_NS = (SENDERS * 1.5 * BDP_BYTES * 8e9 * PACKET_BYTES) / MTU / RATE_BPS;

  it('leave no queue behind their unsolicited burst, use what credit is for, and end together', async () => {
    const { queue, doneNs, hosts, port, isWhole } = await incast(SENDERS, 'rccc');
    expect(isWhole).toBe(true);
    expect(hosts).toMatchObject({ tx_retransmitted: 0, local_ack_timeout_err: 0 });
    expect(port.tx_dropped_queue_full).toBe(0);
    // The model: the burst, an idle round trip until credit brings packets, and the rest at the rate of the credit.
    const packets = (SENDERS * 256 * 1024) / MTU;
    const allNs = (packets * PACKET_BYTES * 8e9) / RATE_BPS / 0.98;
    expect(Math.max(...doneNs)).toBeLessThan(allNs + 4 * RTT_NS);
    expect(Math.max(...doneNs)).toBeGreaterThan(0.97 * allNs);
    expect(Math.min(...doneNs)).toBeGreaterThan(0.93 * Math.max(...doneNs));
    const behind = queue.slice(Math.ceil((BURST_NS + 4 * RTT_NS) / 1000));
    expect(behind.length).toBeGreaterThan(50);
    expect(Math.max(...behind)).toBeLessThan(BDP_BYTES);
    expect(behind.reduce((sum, bytes) => sum + bytes, 0) / behind.length).toBeLessThan(0.5 * BDP_BYTES);
  });

  it('have a queue of all their windows where the receiver has no pacer', async () => {
    const { queue, isWhole } = await incast(SENDERS, 'rccc-without-pacer');
    expect(isWhole).toBe(true);
    const middle = queue.slice(Math.floor(queue.length / 4), Math.floor(queue.length / 2));
    expect(Math.min(...middle)).toBeGreaterThan(0.7 * (SENDERS * 1.5 - 1) * BDP_BYTES);
  });

  it('lose no credit with acknowledgements: every third of 1,200 is lost, and all ends as fast', async () => {
    const whole = await incast(SENDERS, 'rccc');
    const { doneNs, isWhole, hosts } = await incast(SENDERS, 'rccc', { faults: 'h8>*:every=3:x400' });
    expect(isWhole).toBe(true);
    expect(hosts.local_ack_timeout_err).toBe(0);
    expect(Math.max(...doneNs)).toBeLessThan(1.15 * Math.max(...whole.doneNs));
  });

  it('send what was cut again by credit: a short queue cuts the burst, and hardly anything after it', async () => {
    const { hosts, port, isWhole, doneNs } = await incast(SENDERS, 'rccc', {
      switchConfig: { queuePackets: 32, trim: {} },
    });
    expect(isWhole).toBe(true);
    expect(hosts.local_ack_timeout_err).toBe(0);
    expect(port.tx_trimmed).toBeGreaterThan(0);
    const burst = (SENDERS * 1.5 * BDP_BYTES) / MTU;
    expect(port.tx_trimmed).toBeLessThan(1.5 * burst);
    expect(Math.max(...doneNs)).toBeLessThan(1.2 * ((SENDERS * 256 * PACKET_BYTES * 8e9) / RATE_BPS / 0.98));
  });
});

it('one sender alone has the share of the link that credit is for', async () => {
  const { doneNs, isWhole } = await incast(1, 'rccc', { bytes: 1024 * 1024 });
  expect(isWhole).toBe(true);
  expect(doneNs[0]).toBeLessThan((1024 * PACKET_BYTES * 8e9) / RATE_BPS / 0.98 + 3 * RTT_NS);
});
