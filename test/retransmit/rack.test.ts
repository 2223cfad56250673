/** What RACK-TLP has beyond selective repeat: losses by time, and probes of tails (RFC 8985). */

import { describe, expect, it } from 'vitest';
import { RackSender } from '../../src/retransmit/rack.js';
import { LOSS_DROPPED, LOSS_REPORTED, LOSS_TIMEOUT } from '../../src/retransmit/recovery.js';
import { type RecoveryOptions, recoverySettings } from '../../src/retransmit/recovery-schemes.js';
import { createPair } from '../support/pair.js';

const MTU = 256;
const MESSAGE = 64 * MTU;

/** A sender whose packets leave 100 ns apart from time 0 on, and whose network takes 1,000 ns there and back. */
class Timeline {
  readonly sender: RackSender;
  #next = 0;
  #unacked = 0;
  static readonly gapNs = 100;
  static readonly rttNs = 1000;

  constructor(parameters: object = {}) {
    this.sender = new RackSender(
      recoverySettings({ name: 'rack', ...parameters }) as ConstructorParameters<typeof RackSender>[0],
    );
    this.sender.reset(0);
  }

  /** The next packets leave, at `atNs` or in their turn. */
  send(count: number, atNs?: number): void {
    for (let k = 0; k < count; k++, this.#next++) {
      this.sender.onSent(this.#next, 1, this.#next + 1, atNs ?? this.#next * Timeline.gapNs);
    }
  }

  /** When the answer to the first copy of `psn` comes. */
  static answerNs(psn: number): number {
    return psn * Timeline.gapNs + Timeline.rttNs;
  }

  /** A SACK says that `kept` are there and `unacked` is missing. Returns what is to be sent again. */
  sack(unacked: number, kept: readonly number[], now: number): number[] {
    this.sender.onAnswer(now);
    this.#advance(unacked);
    for (const psn of kept) this.sender.markSacked(psn);
    this.sender.onLoss(unacked, Math.max(unacked, ...kept) + 1, 0, this.#next, LOSS_REPORTED);
    return this.judge(now);
  }

  ack(unacked: number, now: number): number[] {
    this.sender.onAnswer(now);
    this.#advance(unacked);
    return this.judge(now);
  }

  #advance(unacked: number): void {
    this.#unacked = this.sender.advance(unacked);
  }

  judge(now: number): number[] {
    this.sender.detectLosses(this.#unacked, this.#next, true, now);
    return this.missing();
  }

  missing(): number[] {
    const lost: number[] = [];
    for (let psn = this.#unacked; psn !== this.#next; psn++) {
      if (this.sender.nextResend(psn, psn + 1) === psn) lost.push(psn);
    }
    return lost;
  }

  resend(psn: number, now: number): void {
    this.sender.onSent(psn, 1, this.#next, now);
    this.sender.onResent(psn, this.#next);
  }
}

describe('rack judges by time', () => {
  it('a packet is lost when reo_wnd, a quarter of the shortest round trip, has passed since a later one was delivered', () => {
    const line = new Timeline();
    line.send(10);
    line.ack(3, Timeline.answerNs(2));
    expect(line.sack(3, [4], Timeline.answerNs(4))).toEqual([]);
    // sent + RACK.rtt + min_RTT / 4
    expect(line.sender.dueNs).toBe(3 * Timeline.gapNs + Timeline.rttNs + Timeline.rttNs / 4);
    expect(line.judge(line.sender.dueNs - 1)).toEqual([]);
    expect(line.judge(line.sender.dueNs)).toEqual([3]);
  });

  it('and not when it comes within the window; with no window it is', () => {
    const outcome = (reorderShare: number) => {
      const line = new Timeline({ reorderShare });
      line.send(10);
      line.ack(3, Timeline.answerNs(2));
      const lost = line.sack(3, [4], Timeline.answerNs(4));
      return lost.concat(line.ack(5, Timeline.answerNs(4) + 50));
    };
    expect(outcome(0.25)).toEqual([]);
    expect(outcome(0)).toEqual([3]);
  });

  it('what was sent after the newest delivered packet is never lost, however late it is', () => {
    const line = new Timeline({ probeRtts: 0 });
    line.send(10);
    line.ack(5, Timeline.answerNs(4));
    expect(line.judge(1e9)).toEqual([]);
  });

  it('finds a lost repetition by a packet that was sent after it, and only so', () => {
    const line = new Timeline({ probeRtts: 0 });
    line.send(5);
    line.ack(2, Timeline.answerNs(1));
    line.sack(2, [3, 4], Timeline.answerNs(4));
    expect(line.judge(1450)).toEqual([2]);
    line.resend(2, 1500);
    line.send(1, 1600);
    expect(line.judge(1e6)).toEqual([]); // Nothing that was sent later has arrived.
    expect(line.sack(2, [3, 4, 5], 2600)).toEqual([]);
    expect(line.sender.dueNs).toBe(1500 + 1000 + 250);
    expect(line.judge(2750)).toEqual([2]);
  });

  it('widens the window once a round trip when a repetition was needless, and narrows it after 16 recoveries', () => {
    const line = new Timeline({ probeRtts: 0 });
    line.send(20);
    line.ack(3, Timeline.answerNs(2));
    line.sack(3, [5, 6], Timeline.answerNs(6));
    line.judge(1e4);
    expect(line.missing()).toEqual([3, 4]);
    line.resend(3, 1e4);
    line.resend(4, 1e4);
    expect(line.sender.reorderWindowNs).toBe(250);
    line.ack(7, 1e4 + 100); // Sooner than any round trip: the first copies were late.
    expect(line.sender.reorderWindowNs).toBe(500);
    let now = 2e4;
    for (let k = 0; k < 15; k++) {
      // The needless one was the first of 16.
      expect(line.sender.reorderWindowNs).toBe(500);
      const first = 20 + 2 * k;
      line.ack(first, now);
      line.send(2, now);
      line.sack(first, [first + 1], now + 1000);
      line.judge(now + 5000);
      line.resend(first, now + 5000);
      now += 1e4;
      line.ack(first + 2, now);
    }
    expect(line.sender.reorderWindowNs).toBe(250);
  });

  it('probes the oldest packet, once a silence, after two smoothed round trips', () => {
    const line = new Timeline();
    line.send(10);
    expect(line.sender.dueNs).toBe(Number.POSITIVE_INFINITY); // No round trip is known.
    line.ack(5, Timeline.answerNs(4));
    const due = Timeline.answerNs(4) + 2 * Timeline.rttNs;
    expect(line.sender.dueNs).toBe(due);
    expect(line.judge(due - 1)).toEqual([]);
    expect(line.judge(due)).toEqual([5]);
    line.resend(5, due);
    line.sender.onAwaited(due);
    expect(line.judge(1e9)).toEqual([]);
    const without = new Timeline({ probeRtts: 0 });
    without.send(10);
    without.ack(5, Timeline.answerNs(4));
    expect(without.sender.dueNs).toBe(Number.POSITIVE_INFINITY);
  });

  it('of a receiver that keeps nothing sends everything again', () => {
    const line = new Timeline();
    line.send(6);
    line.ack(2, Timeline.answerNs(1));
    line.sender.onLoss(2, 6, 0, 6, LOSS_DROPPED);
    expect(line.missing()).toEqual([2, 3, 4, 5]);
  });

  it('at a timeout takes the oldest for lost, and what is overdue', () => {
    const line = new Timeline({ probeRtts: 0 });
    line.send(10);
    line.ack(2, Timeline.answerNs(1));
    line.judge(700 + Timeline.rttNs + 250); // Packets 2 to 7 are overdue.
    line.sender.onLoss(2, 10, 0, 10, LOSS_TIMEOUT);
    expect(line.missing()).toEqual([2, 3, 4, 5, 6, 7]);
  });
});

/** `messages` WRITEs of 64 packets, one after the other, over 10 Gb/s and 20 us a cable. */
async function transfer(
  recovery: RecoveryOptions,
  faults: string,
  messages = 8,
  op: 'RDMA_WRITE' | 'RDMA_READ' = 'RDMA_WRITE',
  recoveryB = recovery,
) {
  const pair = await createPair({
    recovery,
    mtu: MTU,
    delayNs: 20_000,
    rateBps: 10e9,
    startPsnA: 0xffffe0,
    attrA: { inflightPackets: 256 },
    attrB: { inflightPackets: 256 },
    recoveryB,
    faults,
  });
  const { a, b } = pair;
  a.mr.bytes.fill(7, 0, MESSAGE);
  b.mr.bytes.fill(op === 'RDMA_WRITE' ? 0 : 7, 0, MESSAGE);
  for (let k = 0; k < messages; k++) {
    a.qp.postSend({ opcode: op, sges: [a.mr.sge(0, MESSAGE)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
  }
  const done = pair.completions(a.cq, messages);
  pair.run();
  expect(done.every(({ statusName }) => statusName === 'SUCCESS')).toBe(true);
  expect(b.mr.bytes.subarray(0, MESSAGE).equals(a.mr.bytes.subarray(0, MESSAGE))).toBe(true);
  const { tx_retransmitted, local_ack_timeout_err } = a.device.counters();
  return { again: tx_retransmitted, timeouts: local_ack_timeout_err };
}

describe('over a network that reorders', () => {
  /** 15 of 512 packets, none of them among the last: those would wait for packets that never follow. */
  const late = (direction: string) => `${direction}:reorder=0.05,4:x15`;

  it.each([
    ['RDMA_WRITE', 'a>b'],
    ['RDMA_READ', 'b>a'],
  ] as const)('%s is not sent again; under selective repeat and IRN it is', async (op, direction) => {
    expect(await transfer('rack', late(direction), 8, op)).toEqual({ again: 0, timeouts: 0 });
    for (const other of ['selective-repeat', 'irn'] as const) {
      expect((await transfer(other, late(direction), 8, op)).again, other).toBeGreaterThan(5);
    }
  });
});

describe('over a network that loses', () => {
  const psn = (offset: number) => (0xffffe0 + offset) & 0xffffff;

  it('a repetition that is lost, too, is found without a timeout', async () => {
    expect(await transfer('rack', `a>b:psn=${psn(200)}:x3`)).toEqual({ again: 3, timeouts: 0 });
  });

  it('the tail is probed; without the probe a timeout finds it', async () => {
    const tail = `a>b:psn=${psn(8 * 64 - 1)}:once`;
    expect(await transfer('rack', tail)).toMatchObject({ timeouts: 0 });
    expect(await transfer({ name: 'rack', probeRtts: 0 }, tail)).toMatchObject({ timeouts: 1 });
    expect(await transfer('selective-repeat', tail)).toMatchObject({ timeouts: 1 });
  });

  it('a peer with go-back-N gets everything behind the gap again, without a timeout', async () => {
    const { again, timeouts } = await transfer('rack', `a>b:psn=${psn(100)}:once`, 8, 'RDMA_WRITE', 'go-back-n');
    expect(again).toBeGreaterThan(1);
    expect(timeouts).toBe(0);
    const worse = await transfer('rack', 'a>b:random=0.02', 8, 'RDMA_WRITE', 'go-back-n');
    expect(worse.again).toBeGreaterThan(again);
  });

  it('a loss costs one packet, as under selective repeat', async () => {
    expect(await transfer('rack', `a>b:psn=${psn(100)}:once`)).toEqual({ again: 1, timeouts: 0 });
  });
});
