/**
 * The experiment of Guo et al. (SIGCOMM 2016, §4.1) in virtual time: messages of 4096 packets, one packet in 256 lost, always where the
 * IP identification ends in 0xff. Go-back-0 never completes one; the others pay what arithmetic says they must.
 */

import { describe, expect, it } from 'vitest';
import type { RecoveryName } from '../../src/retransmit/recovery-schemes.js';
import { createPair, type Pair } from '../support/pair.js';

const MTU = 256;
const PACKETS = 4096;
const BYTES = PACKETS * MTU;
/** One packet in K is lost. */
const K = 256;
const RATE_BPS = 10e9;
const OPS = ['SEND', 'RDMA_WRITE', 'RDMA_READ'] as const;
type Op = (typeof OPS)[number];

/** More than any wait the tests make: packets in flight, so that W is the link's and not the window's. */
const INFLIGHT_PACKETS = 2048;

function pairWith(recovery: RecoveryName, faults: string | undefined, delayNs: number): Promise<Pair> {
  // 1 ms: a lost NAK must not cost more than a message's worth of line time.
  const attr = { inflightPackets: INFLIGHT_PACKETS, timeout: 8 };
  const rules = faults === undefined ? {} : { faults };
  return createPair({
    recovery,
    mtu: MTU,
    rateBps: RATE_BPS,
    delayNs,
    attrA: attr,
    attrB: attr,
    memoryBytes: BYTES,
    ...rules,
  });
}

function post({ a, b }: Pair, op: Op, messages: number): void {
  for (let k = 0; k < messages; k++) {
    const sges = [a.mr.sge()];
    if (op === 'SEND') {
      b.qp.postRecv({ sges: [b.mr.sge()] });
      a.qp.postSend({ opcode: op, sges });
    } else a.qp.postSend({ opcode: op, sges, remoteAddr: b.mr.addr, rkey: b.mr.rkey });
  }
}

/** The side whose packets carry the data, and the direction they take. */
function sourceOf(pair: Pair, op: Op) {
  return op === 'RDMA_READ'
    ? ({ player: pair.b, direction: 'b>a' } as const)
    : ({ player: pair.a, direction: 'a>b' } as const);
}

interface Efficiency {
  /** Payload packets that were needed / that were sent. */
  readonly measured: number;
  /** Packets sent between a loss and the restart, on average. */
  readonly wasted: number;
}

async function efficiency(recovery: RecoveryName, op: Op, delayNs: number, messages: number): Promise<Efficiency> {
  const direction = op === 'RDMA_READ' ? 'b>a' : 'a>b';
  const pair = await pairWith(recovery, `${direction}:ip-id-lsb=0xff`, delayNs);
  post(pair, op, messages);
  const completions = pair.completions(pair.a.cq, messages, 5_000_000);
  expect(completions.map(({ statusName }) => statusName)).toEqual(Array(messages).fill('SUCCESS'));
  const c = sourceOf(pair, op).player.device.counters();
  return {
    measured: (messages * PACKETS) / c.tx_data_packets,
    wasted: c.retry_rewind_packets / Math.max(1, c.retry_rewinds),
  };
}

/** Of go-back-N under the deterministic rule: every loss wastes W packets and itself, and the next one comes K packets later. */
function goBackNEfficiency(wasted: number): number {
  const periods = Math.ceil((wasted + 1) / K);
  return 1 - (wasted + 1) / (periods * K);
}

describe.each(OPS)('one %s packet in 256 lost, messages of 4096 packets', (op) => {
  it('go-back-0 completes nothing, at full use of the link', async () => {
    const pair = await pairWith('go-back-0', 'ip-id-lsb=0xff', 2_000);
    const untilNs = 20e6; // Eighteen messages' worth of line time.
    post(pair, op, 4);
    pair.run({ untilNs, eventsMax: 5_000_000 });
    expect(pair.a.cq.poll()).toEqual([]);
    const { player, direction } = sourceOf(pair, op);
    const { packets, bytes, dropped } = pair.link.counters[direction];
    const linkUse = ((bytes + packets * 66) * 8) / (RATE_BPS * (untilNs / 1e9));
    console.log(`${op} go-back-0: 0 messages, ${packets} packets, ${dropped} lost, link use ${linkUse.toFixed(3)}`);
    expect(player.device.counters().tx_data_packets).toBeGreaterThan(10 * PACKETS);
    expect(linkUse).toBeGreaterThan(0.95);
  });

  it('but with nothing lost go-back-0 completes', async () => {
    const pair = await pairWith('go-back-0', undefined, 2_000);
    post(pair, op, 4);
    expect(pair.completions(pair.a.cq, 4)).toHaveLength(4);
    expect(sourceOf(pair, op).player.device.counters().tx_data_packets).toBe(4 * PACKETS);
  });

  it.each([1_000, 8_000, 20_000])('go-back-N pays the packets of one round trip, link delay %i ns', async (delayNs) => {
    const { measured, wasted } = await efficiency('go-back-n', op, delayNs, 6);
    const expected = goBackNEfficiency(wasted);
    console.log(
      `${op} go-back-n, ${delayNs} ns: W ${wasted.toFixed(1)}, efficiency ${measured.toFixed(4)}, expected ${expected.toFixed(4)}`,
    );
    expect(Math.abs(measured - expected)).toBeLessThan(0.015);
  });

  it('selective repeat pays the lost packets only', async () => {
    const { measured } = await efficiency('selective-repeat', op, 8_000, 6);
    console.log(`${op} selective-repeat: efficiency ${measured.toFixed(4)}, expected ${(1 - 1 / K).toFixed(4)}`);
    expect(Math.abs(measured - (1 - 1 / K))).toBeLessThan(0.002);
  });
});
