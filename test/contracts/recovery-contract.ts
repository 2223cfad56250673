/**
 * What every loss-recovery scheme must do, and exactly which packets each of them sends again. Two simulated hosts, messages of eight
 * packets, a link long enough that a whole burst has left before the first answer comes back, and one planned mishap a test.
 */

import { describe, expect, it } from 'vitest';
import { readU24 } from '../../src/core/bytes.js';
import { RC_READ_RESPONSE_FIRST, RC_READ_RESPONSE_ONLY } from '../../src/packet/opcode.js';
import { type RecoveryName, senderTraits, usesSack } from '../../src/retransmit/recovery-schemes.js';
import { createPair, type Pair } from '../support/pair.js';

/** What the traits of a scheme promise. */
interface Promised {
  /**
   * Offsets of the packets sent again when the receiver reports that packet `lost` is missing, of a burst of `sent` packets; the message
   * that holds it began at packet `start`.
   */
  resent(lost: number, start: number, sent: number): number[];
  /** The same for a lost READ response. */
  readAgain(lost: number, start: number, sent: number): number[];
  /** Timeouts until a loss in the middle is repaired: one where nothing but a switch tells of losses. */
  readonly lossTimeouts: number;
  /** What is lost or late at the end, once a round trip is known: timeouts until it is found. A scheme that judges by time probes before. */
  readonly tailTimeouts: number;
  /** Every data packet asks for an answer: each tells what has arrived, and what is lost at the end is found by a probe. */
  readonly asksEach: boolean;
  /** The opcode that reports a gap in requests. */
  readonly report: 'ACKNOWLEDGE' | 'SACK';
}

function promisedBy(name: RecoveryName): Promised {
  const { goesBack, restartsMessages, infersLosses, usesTime, wantsEcho } = senderTraits(name);
  const readAgain = (lost: number, start: number, sent: number) =>
    goesBack ? range(restartsMessages ? start : lost, sent) : [lost];
  return {
    // No packet of a message but the last asks for an acknowledgement here, so a timeout finds all of it unacknowledged.
    resent: infersLosses ? readAgain : (_lost, start, sent) => range(start, sent),
    readAgain,
    lossTimeouts: infersLosses ? 0 : 1,
    tailTimeouts: usesTime ? 0 : 1,
    asksEach: wantsEcho,
    report: usesSack(name) ? 'SACK' : 'ACKNOWLEDGE',
  };
}

const MTU = 256;
const PACKETS = 8;
/** Not a multiple of the MTU or of four. */
const BYTES = PACKETS * MTU - 5;
/** The burst crosses the PSN wrap. */
const START = 0xfffffd;
const REQUESTER_OPS = ['SEND', 'RDMA_WRITE'] as const;
type Op = (typeof REQUESTER_OPS)[number] | 'RDMA_READ';
type Direction = 'a>b' | 'b>a';

const psn = (offset: number) => (START + offset) & 0xffffff;
const range = (from: number, end: number) => Array.from({ length: end - from }, (_, i) => from + i);

/** All packets from offset `from` on were sent again. */
const repeated = (from: number, timeouts: number) => ({
  resent: range(from, PACKETS),
  retransmitted: PACKETS - from,
  timeouts,
});

/** One run: `messages` of a from or to b, under fault rules, until everything has come to rest. */
class Run {
  readonly pair: Pair;
  readonly #op: Op;
  readonly #messages: number;
  readonly #sent: Record<Direction, number[]>;

  private constructor(pair: Pair, op: Op, messages: number, sent: Record<Direction, number[]>) {
    this.pair = pair;
    this.#op = op;
    this.#messages = messages;
    this.#sent = sent;
  }

  static async of(
    recovery: RecoveryName,
    op: Op,
    faults: string | undefined,
    messages = 1,
    bytes = BYTES,
  ): Promise<Run> {
    const sent: Record<Direction, number[]> = { 'a>b': [], 'b>a': [] };
    const pair = await createPair({
      recovery,
      mtu: MTU,
      delayNs: 10_000,
      startPsnA: START,
      ...(faults !== undefined && { faults }),
      onPacket: (direction, packet) => {
        const isResponse = packet[0] >= RC_READ_RESPONSE_FIRST && packet[0] <= RC_READ_RESPONSE_ONLY;
        if (direction === 'a>b' || isResponse) sent[direction].push((readU24(packet, 9) - START) & 0xffffff);
      },
    });
    const run = new Run(pair, op, messages, sent);
    run.#start(bytes);
    return run;
  }

  #start(bytes: number): void {
    const { a, b } = this.pair;
    for (const { mr, startPsn } of [a, b]) for (let i = 0; i < mr.length; i++) mr.bytes[i] = (i * 31 + startPsn) & 255;
    for (let k = 0; k < this.#messages; k++) {
      const sges = [a.mr.sge(k * BYTES, bytes)];
      if (this.#op === 'SEND') {
        b.qp.postRecv({ wrId: k, sges: [b.mr.sge(k * BYTES, bytes)] });
        a.qp.postSend({ opcode: 'SEND', wrId: k, sges });
      } else {
        const remoteAddr = b.mr.addr + BigInt(k * BYTES);
        a.qp.postSend({ opcode: this.#op, wrId: k, sges, remoteAddr, rkey: b.mr.rkey });
      }
    }
    this.pair.run();
    this.#checkDelivered(this.#messages * bytes);
  }

  #checkDelivered(bytes: number): void {
    const { a, b } = this.pair;
    const one = range(0, this.#messages).map((wrId) => [wrId, 'SUCCESS']);
    expect(a.cq.poll(9).map(({ wrId, statusName }) => [wrId, statusName])).toEqual(one);
    expect(b.recvCq.poll(9).map(({ wrId, statusName }) => [wrId, statusName])).toEqual(this.#op === 'SEND' ? one : []);
    expect(b.mr.bytes.subarray(0, bytes).equals(a.mr.bytes.subarray(0, bytes))).toBe(true);
    expect(b.mr.bytes[bytes]).not.toBe(a.mr.bytes[bytes]); // They differed before: nothing was written past the end.
    expect(this.pair.events.nextNs).toBe(Number.POSITIVE_INFINITY);
  }

  /** Every packet that was sent although it had been sent before, as offsets from the first PSN. */
  resent(direction: Direction): number[] {
    const seen = new Set<number>();
    return this.#sent[direction].filter((offset) => seen.has(offset) || !seen.add(offset));
  }

  get timeouts(): number {
    return this.pair.a.device.counters().local_ack_timeout_err;
  }

  get retransmitted(): number {
    return this.pair.a.device.counters().tx_retransmitted + this.pair.b.device.counters().tx_retransmitted;
  }
}

export function describeRecovery(name: RecoveryName): void {
  const scheme = promisedBy(name);
  const run = (op: Op, faults: string | undefined, messages?: number, bytes?: number) =>
    Run.of(name, op, faults, messages, bytes);

  describe(`${name} recovers`, () => {
    describe.each(REQUESTER_OPS)('%s from', (op) => {
      it('nothing: no packet is sent twice', async () => {
        const { timeouts, retransmitted, ...rest } = await measured(run(op, undefined), 'a>b');
        expect({ timeouts, retransmitted, ...rest }).toEqual({ timeouts: 0, retransmitted: 0, resent: [] });
      });

      it.each(range(0, PACKETS - 1))('loss of packet %i of eight', async (lost) => {
        const resent = scheme.resent(lost, 0, PACKETS);
        expect(await measured(run(op, `a>b:psn=${psn(lost)}:once`), 'a>b')).toEqual({
          resent,
          retransmitted: resent.length,
          timeouts: scheme.lossTimeouts,
        });
      });

      it('loss of the last packet: after a timeout everything unacknowledged comes again', async () => {
        const lost = run(op, `a>b:psn=${psn(PACKETS - 1)}:once`);
        const answered = scheme.asksEach ? PACKETS - 1 : 0;
        expect(await measured(lost, 'a>b')).toEqual(repeated(answered, scheme.asksEach ? 0 : 1));
      });

      it('loss of the only packet', async () => {
        const lost = run(op, `a>b:psn=${psn(0)}:once`, 1, 100);
        expect(await measured(lost, 'a>b')).toEqual({ resent: [0], retransmitted: 1, timeouts: 1 });
      });

      it('loss of the packet that was sent again', async () => {
        const resent = scheme.resent(3, 0, PACKETS);
        // What comes again is acknowledged packet by packet, up to the one that is lost again.
        const again = scheme.lossTimeouts === 0 ? resent : range(3, PACKETS);
        const lost = await run(op, `a>b:psn=${psn(3)}:x2`);
        expect(lost.resent('a>b')).toEqual([...resent, ...again]);
        expect(lost.retransmitted).toBe(resent.length + again.length);
      });

      it('loss of the ACK', async () => {
        const lost = run(op, 'b>a:opcode=ACKNOWLEDGE:once');
        expect(await measured(lost, 'a>b')).toEqual(repeated(scheme.asksEach ? PACKETS : 0, scheme.asksEach ? 0 : 1));
      });

      it('loss of every report of a gap', async () => {
        const reports = PACKETS - 4; // A selective acknowledgement follows each packet behind the gap; a NAK is sent once.
        const lost = run(
          op,
          `a>b:psn=${psn(3)}:once;b>a:opcode=${scheme.report}:x${scheme.report === 'SACK' ? reports : 1}`,
        );
        if (scheme.asksEach)
          expect(await measured(lost, 'a>b')).toEqual({ resent: [3], retransmitted: 1, timeouts: 0 });
        else expect(await measured(lost, 'a>b')).toEqual(repeated(0, 1));
      });

      it('packets that all come twice', async () => {
        expect((await run(op, 'duplicate=1')).resent('a>b')).toEqual([]);
      });

      it('damaged packets, as from lost ones', async () => {
        expect((await run(op, 'a>b:corrupt=1:once')).resent('a>b')).toEqual(scheme.resent(0, 0, PACKETS));
      });

      it('a packet that two others overtake', async () => {
        const { timeouts } = await run(op, 'a>b:reorder=1,2:once');
        expect(timeouts).toBe(0);
      });

      it('loss in the first of two messages in flight', async () => {
        const lost = run(op, `a>b:psn=${psn(3)}:once`, 2);
        expect((await measured(lost, 'a>b')).resent).toEqual(scheme.resent(3, 0, 2 * PACKETS));
      });

      it('loss in the second of two messages in flight', async () => {
        const lost = run(op, `a>b:psn=${psn(PACKETS + 3)}:once`, 2);
        expect((await measured(lost, 'a>b')).resent).toEqual(scheme.resent(PACKETS + 3, PACKETS, 2 * PACKETS));
      });
    });

    describe('RDMA_READ from', () => {
      it('nothing: no response is sent twice', async () => {
        expect(await measured(run('RDMA_READ', undefined), 'b>a')).toEqual({
          resent: [],
          retransmitted: 0,
          timeouts: 0,
        });
      });

      it('loss of the request', async () => {
        const lost = await run('RDMA_READ', 'a>b:opcode=RDMA_READ_REQUEST:once');
        expect(lost.resent('a>b')).toEqual([0]);
        expect(lost.resent('b>a')).toEqual([]);
        expect(lost.timeouts).toBe(1);
      });

      it.each(range(0, PACKETS - 1))('loss of response %i of eight', async (at) => {
        const lost = await run('RDMA_READ', `b>a:psn=${psn(at)}:once`);
        expect(lost.resent('b>a')).toEqual(scheme.readAgain(at, 0, PACKETS));
        expect(lost.timeouts).toBe(scheme.lossTimeouts);
      });

      it('loss of the last response: after a timeout, or a probe', async () => {
        const lost = await run('RDMA_READ', `b>a:psn=${psn(PACKETS - 1)}:once`);
        expect(lost.resent('b>a')).toEqual(scheme.readAgain(PACKETS - 1, 0, PACKETS));
        expect(lost.timeouts).toBe(scheme.tailTimeouts);
      });

      it('loss of the only response', async () => {
        const lost = await run('RDMA_READ', `b>a:psn=${psn(0)}:once`, 1, 100);
        expect(lost.resent('b>a')).toEqual([0]);
      });

      it('loss of the response that was sent again', async () => {
        const resent = scheme.readAgain(3, 0, PACKETS);
        const lost = await run('RDMA_READ', `b>a:psn=${psn(3)}:x2`);
        expect(lost.resent('b>a')).toEqual([...resent, ...resent]);
      });

      it('loss of the request that asks again', async () => {
        // The first strike of the psn rule is the request itself, which passes: only b>a is lost, then the repeated request.
        const again = scheme.readAgain(3, 0, PACKETS)[0];
        const rule = `b>a:psn=${psn(3)}:once;a>b:psn=${psn(again)}:x${again === 0 ? 2 : 1}`;
        const lost = await run('RDMA_READ', rule);
        expect(lost.resent('b>a')).toEqual(scheme.readAgain(3, 0, PACKETS));
        expect(lost.timeouts).toBeGreaterThanOrEqual(scheme.tailTimeouts);
        if (scheme.tailTimeouts === 0) expect(lost.timeouts).toBe(0);
      });

      it('packets that all come twice, and in any order', async () => {
        await run('RDMA_READ', 'b>a:duplicate=1', 2);
        await run('RDMA_READ', 'b>a:reorder=1,2:x3', 2);
      });

      it('loss in the first of two READs in flight', async () => {
        const lost = await run('RDMA_READ', `b>a:psn=${psn(3)}:once`, 2);
        expect(lost.resent('b>a')).toEqual(scheme.readAgain(3, 0, 2 * PACKETS));
      });

      it('loss in the second of two READs in flight', async () => {
        const lost = await run('RDMA_READ', `b>a:psn=${psn(PACKETS + 3)}:once`, 2);
        expect(lost.resent('b>a')).toEqual(scheme.readAgain(PACKETS + 3, PACKETS, 2 * PACKETS));
      });
    });
  });
}

async function measured(run: Promise<Run>, direction: Direction) {
  const done = await run;
  return { resent: done.resent(direction), retransmitted: done.retransmitted, timeouts: done.timeouts };
}
