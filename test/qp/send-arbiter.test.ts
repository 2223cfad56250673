/** Where the socket of a peer is too small for all queue pairs that send to it, they take turns in bursts. */

import { describe, expect, it } from 'vitest';
import { RC_ACK, RC_WRITE_FIRST, RC_WRITE_ONLY } from '../../src/packet/opcode.js';
import { psnDiff } from '../../src/packet/psn.js';
import { PARSE_OK, parseRoce, RocePacket } from '../../src/packet/roce.js';
import { PeerInFlightLimit } from '../../src/qp/peer-in-flight-limit.js';
import { BURST_PACKETS_MIN, SendArbiter } from '../../src/qp/send-arbiter.js';
import type { QueuePair } from '../../src/verbs/queue-pair.js';
import { connectToPeer, LoneNic, MTU } from '../support/lone-nic.js';
import { connectQp, createPair, type PairOptions } from '../support/pair.js';

const never = () => {};

/** `count` queue pairs that were told `limit` packets, among `total` altogether. */
function pool(limit: number, count: number, total = count) {
  const all = { count: total };
  const turns = new SendArbiter(limit, all);
  const leave = (flow: PeerInFlightLimit) => {
    all.count--;
    flow.detach();
    turns.grant();
  };
  return { turns, leave, flows: Array.from({ length: count }, () => new PeerInFlightLimit(turns)) };
}

describe('a pool of turns', () => {
  it.each([
    [496, 124, false],
    [496, 125, true],
    [32, 8, false],
    [32, 9, true],
    [31, 1000, false],
  ])('of %i packets and %i queue pairs is needed: %s', (limit, count, needed) => {
    const [flow] = pool(limit, count).flows;
    expect(flow.isArbitrated).toBe(needed);
    if (needed) expect(flow.windowPackets).toBe(limit === 496 ? 32 : BURST_PACKETS_MIN);
  });

  it('has as many turns at a time as there is room for, and wakes who waits in the order of asking', () => {
    const { turns, leave, flows } = pool(2 * BURST_PACKETS_MIN + 7, 20);
    const woken: number[] = [];
    const got = flows.slice(0, 5).map((flow, i) => flow.burstPackets(() => woken.push(i)));
    expect(got).toEqual([BURST_PACKETS_MIN, BURST_PACKETS_MIN, 0, 0, 0]);
    expect(turns.taken).toBe(2 * BURST_PACKETS_MIN);
    flows[1].sent(3);
    flows[1].settle(3, false);
    expect(woken).toEqual([]);
    flows[1].endBurst(); // Nothing more to send: three packets are in flight, and the rest is free.
    flows[1].settle(3, false);
    expect(woken).toEqual([2]);
    flows[0].sent(BURST_PACKETS_MIN);
    flows[0].settle(BURST_PACKETS_MIN, false);
    expect(woken).toEqual([2]);
    flows[0].settle(0, false);
    expect(woken).toEqual([2, 3]);
    expect(flows[0].burstPackets(() => woken.push(0))).toBe(0); // Behind the one that waits.
    leave(flows[2]);
    leave(flows[3]);
    expect(woken).toEqual([2, 3, 4, 0]);
  });

  it.each([
    [32, 16],
    [143, 17],
    [192, 24],
    [496, 32],
    [100_000, 32],
  ])('of %i packets has turns of %i', (limit, packets) => {
    expect(pool(limit, 1000).turns.burstPackets).toBe(packets);
  });

  /** 20 of them, of which 18 want to send without end: `serve` ends the oldest turn, whose owner asks again. Says who was woken. */
  function busyPool() {
    const { flows } = pool(2 * BURST_PACKETS_MIN, 20);
    const running: number[] = [];
    const ask = (i: number) => {
      const packets = flows[i].burstPackets(() => running.push(i));
      if (packets > 0) running.push(i);
      return packets;
    };
    for (let i = 0; i < 18; i++) ask(i);
    const serve = () => {
      const i = running.shift() as number;
      flows[i].sent(BURST_PACKETS_MIN);
      flows[i].settle(0, false);
      ask(i);
      return running.at(-1);
    };
    return { flows, ask, serve, running };
  }

  it('lets go ahead who has sent nothing for longer than the next one in the line, and who has some of its share left, but not who has had all of it', () => {
    const { flows, ask, serve, running } = busyPool();
    for (let i = 0; i < 18; i++) serve();
    expect(ask(18)).toBe(0); // It has never had a turn, and the others have.
    expect(serve()).toBe(18);
    flows[18].sent(4);
    flows[18].endBurst();
    running.pop();
    flows[18].settle(0, false);
    const after = running.at(-1); // Somebody has the room.
    expect(after).not.toBe(18);
    expect(ask(18)).toBe(0);
    expect(serve()).toBe(18);
    expect(flows[18].burstPackets(never)).toBe(12); // Of the same share.
    flows[18].sent(12);
    running.pop();
    flows[18].settle(0, false);
    expect(ask(18)).toBe(0);
    const others = Array.from({ length: 18 }, () => serve());
    expect(others.indexOf(18)).toBe(16); // The whole line is before it.
  });

  it('serves all alike who want to send without end', () => {
    const { serve, running } = busyPool();
    const first = [...running, ...Array.from({ length: 16 }, () => serve())];
    expect(first).toEqual(Array.from({ length: 18 }, (_, i) => i));
    expect(Array.from({ length: 36 }, () => serve())).toEqual([...first, ...first]);
  });

  it('serves who wants much while others come and go with little', () => {
    const { flows, ask, serve, running } = busyPool();
    const woken: Array<number | undefined> = [];
    for (let k = 0; k < 200; k++) {
      if (!running.includes(19)) ask(19);
      woken.push(serve());
      if (!running.includes(19)) continue;
      flows[19].sent(1);
      flows[19].endBurst();
      running.splice(running.indexOf(19), 1);
      flows[19].settle(0, false);
    }
    for (let i = 0; i < 18; i++)
      expect(woken.filter((who) => who === i).length, `turns of ${i}`).toBeGreaterThanOrEqual(5);
    expect(woken).toContain(19);
  });

  it('forgets who leaves while it waits', () => {
    const { turns, leave, flows } = pool(BURST_PACKETS_MIN * 2, 20);
    flows[0].burstPackets(never);
    flows[1].burstPackets(never);
    const woken: string[] = [];
    flows[2].burstPackets(() => woken.push('left'));
    flows[3].burstPackets(() => woken.push('stayed'));
    leave(flows[2]);
    flows[0].endBurst();
    flows[0].settle(0, false);
    expect(woken).toEqual(['stayed']);
    for (const flow of flows) if (flow !== flows[2]) leave(flow);
    expect([turns.taken, turns.members]).toEqual([0, 0]);
  });

  it('does not count who hears nothing of its peer, and leaves it the window that it had', () => {
    const { turns, flows } = pool(BURST_PACKETS_MIN * 2, 20);
    flows[0].burstPackets(never);
    flows[0].sent(BURST_PACKETS_MIN);
    flows[0].settle(BURST_PACKETS_MIN, false);
    expect(turns.taken).toBe(BURST_PACKETS_MIN);
    flows[0].settle(BURST_PACKETS_MIN, true);
    expect([turns.taken, flows[0].isArbitrated, flows[0].windowPackets]).toEqual([0, false, 2]);
    flows[0].settle(1, false);
    expect([turns.taken, flows[0].isArbitrated]).toEqual([1, true]);
  });

  it('wakes who waits for a turn and needs none any more: its peer is silent', () => {
    const { flows } = pool(BURST_PACKETS_MIN * 2, 20);
    flows[0].burstPackets(never);
    flows[1].burstPackets(never);
    const woken: string[] = [];
    flows[2].burstPackets(() => woken.push('silent'));
    flows[2].settle(0, true);
    expect(woken).toEqual(['silent']);
    expect(flows[2].isArbitrating).toBe(true); // Others still have turns.
    flows[0].endBurst();
    flows[0].settle(0, false);
    expect(woken).toEqual(['silent']);
  });

  it('has its part of the socket, whatever others were told', () => {
    const { turns, flows } = pool(1024, 512, 1024);
    const got = flows.map((flow) => flow.burstPackets(never)).filter((packets) => packets > 0);
    expect(got).toHaveLength(512 / turns.burstPackets);
  });
});

/** Many queue pairs from a to b that all WRITE, and what is in flight at most. */
async function manyQueuePairs(
  qps: number,
  options: PairOptions & { inflightPackets: number; packets: number; messages: number },
) {
  const mtu = 1024;
  const [sent, acked] = [new Map<number, number>(), new Map<number, number>()];
  const partner = new Map<number, number>();
  const packet = new RocePacket();
  const start = 5000;
  let inFlight = 0;
  let inFlightMax = 0;
  let acks = 0;
  const pair = await createPair({
    ...options,
    mtu,
    attrA: { inflightPackets: options.inflightPackets },
    onPacket: (_, bytes) => {
      expect(parseRoce(bytes, 0, bytes.length, packet)).toBe(PARSE_OK);
      const { opcode, psn, destQpn } = packet;
      if (opcode === RC_ACK && partner.has(destQpn)) {
        const qpn = partner.get(destQpn) as number;
        const behind = Math.max(psnDiff(psn, start - 1), acked.get(qpn) ?? 0);
        inFlight -= behind - (acked.get(qpn) ?? 0);
        acked.set(qpn, behind);
        acks++;
      } else if (opcode >= RC_WRITE_FIRST && opcode <= RC_WRITE_ONLY) {
        const upTo = Math.max(psnDiff(psn, start - 1), sent.get(destQpn) ?? 0);
        inFlight += upTo - (sent.get(destQpn) ?? 0);
        sent.set(destQpn, upTo);
        inFlightMax = Math.max(inFlightMax, inFlight);
      }
    },
  });
  const { a, b } = pair;
  const senders: QueuePair[] = [];
  for (let i = 0; i < qps; i++) {
    const own = await a.pd.createQp({ sendCq: a.cq, recvCq: a.recvCq });
    const peer = await b.pd.createQp({ sendCq: b.cq, recvCq: b.recvCq });
    partner.set(own.qpn, peer.qpn);
    const common = { mtu, recovery: options.recovery ?? ('go-back-n' as const), psn: start };
    const attr = { inflightPackets: options.inflightPackets, ...options.attrB };
    await connectQp(own, { address: b.device.address, qpn: peer.qpn, psn: start }, { ...common, attr });
    await connectQp(peer, { address: a.device.address, qpn: own.qpn, psn: start }, { ...common, attr });
    senders.push(own);
  }
  for (const qp of senders) {
    for (let k = 0; k < options.messages; k++) {
      qp.postSend({
        opcode: 'RDMA_WRITE',
        wrId: k,
        sges: [a.mr.sge(0, options.packets * mtu)],
        remoteAddr: b.mr.addr,
        rkey: b.mr.rkey,
      });
    }
  }
  const done = pair.completions(a.cq, qps * options.messages);
  expect(done.every(({ status }) => status === 0)).toBe(true);
  for (const { qpn } of senders) {
    expect(done.filter((wc) => wc.qpn === qpn).map(({ wrId }) => wrId)).toEqual(
      Array.from({ length: options.messages }, (_, k) => k),
    );
  }
  return { inFlightMax, acks, packets: qps * options.messages * options.packets };
}

describe('many queue pairs', () => {
  it.each([
    [50, 48],
    [80, 96],
  ])(
    '%i at a socket of %i packets never have more in flight than it holds, and all are served',
    async (qps, inflightPackets) => {
      const { inFlightMax } = await manyQueuePairs(qps, { inflightPackets, packets: 9, messages: 4, delayNs: 200_000 });
      expect(inFlightMax).toBeLessThanOrEqual(inflightPackets);
      expect(inFlightMax).toBeGreaterThan(inflightPackets - BURST_PACKETS_MIN);
    },
  );

  it('of single packets fills the socket, too', async () => {
    const { inFlightMax } = await manyQueuePairs(120, {
      inflightPackets: 96,
      packets: 1,
      messages: 2,
      delayNs: 200_000,
    });
    expect(inFlightMax).toBeLessThanOrEqual(96);
    expect(inFlightMax).toBeGreaterThan(96 - BURST_PACKETS_MIN);
  });

  it('is the former one at a socket of fewer packets than two turns: twice as many in flight as it holds', async () => {
    const { inFlightMax } = await manyQueuePairs(40, {
      inflightPackets: 20,
      packets: 9,
      messages: 4,
      delayNs: 200_000,
    });
    expect(inFlightMax).toBe(40);
  });

  it.each(['go-back-n', 'go-back-0', 'selective-repeat', 'irn', 'rack'] as const)(
    'with %s is served also where packets are lost',
    async (recovery) => {
      await manyQueuePairs(40, {
        inflightPackets: 48,
        packets: 5,
        messages: 3,
        recovery,
        faults: 'random=0.02',
        seed: 3,
      });
    },
  );

  it('is served where each is paced', async () => {
    const attrB = { rateControl: { name: 'fixed', rateBps: 50e6 } } as PairOptions['attrB'] & object;
    await manyQueuePairs(40, { inflightPackets: 48, packets: 5, messages: 3, attrB });
  });
});

describe('queue pairs whose peer is silent', () => {
  /** 40 queue pairs at a socket of 32 packets, of which the peer answers only `nic.qp`. */
  async function silentCrowd() {
    const nic = await LoneNic.create({ attr: { inflightPackets: 32, retryCnt: 7 } });
    const others: QueuePair[] = [];
    for (let i = 0; i < 39; i++) {
      const qp = await nic.pd.createQp({ sendCq: nic.cq, recvCq: nic.recvCq });
      await connectToPeer(qp, 'RTS', { inflightPackets: 32, retryCnt: 7 });
      others.push(qp);
    }
    for (const qp of others.slice(0, 2)) qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 20 * MTU)] });
    expect(nic.take()).toHaveLength(2 * BURST_PACKETS_MIN);
    nic.qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 20 * MTU)] });
    expect(nic.take()).toHaveLength(0);
    return { nic, others };
  }

  it('keep others waiting until their timeout, and not longer', async () => {
    const { nic } = await silentCrowd();
    const sent = nic.advance(80e6); // One timeout of 67 ms.
    // One packet of each silent one, again, and a turn of the one that waited.
    expect(sent).toHaveLength(2 + BURST_PACKETS_MIN);
    nic.ack(BURST_PACKETS_MIN - 1);
    expect(nic.take().map(({ at }) => at)).toEqual([16, 17, 18, 19]);
  });

  it('free their room when they go to ERR', async () => {
    const { nic, others } = await silentCrowd();
    await others[0].modify({ state: 'ERR' });
    expect(nic.take().map(({ at }) => at)).toEqual(Array.from({ length: BURST_PACKETS_MIN }, (_, at) => at));
  });
});
