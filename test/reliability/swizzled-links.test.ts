/**
 * Somebody crosses the cables of two connections, a to b and c to d, while both are in use: for a while b hears c and d hears a. Nothing is
 * delivered wrongly, and once the cables are right again both go on. A stranger's packet that differs in nothing cannot be told apart by
 * anybody; the three worlds here leave less and less that differs.
 */

import { describe, expect, it } from 'vitest';
import { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import { pattern } from '../support/lone-nic.js';
import type { Player } from '../support/pair.js';
import { runToRest } from '../support/virtual-time.js';
import { connectPlayers, newPlayer } from './players.js';
import { lay } from './unruly-wire.js';

const RATE_BPS = 10e9;
const FLIGHT_NS = 2_000;
const MESSAGE_BYTES = 32 << 10;
const MESSAGES = 40;
const CROSSED_NS = { from: 200_000, until: 20e6 };

/** Addresses and seeds of a, b, c, d. Hosts of one seed choose the same QPNs and keys. */
const WORLDS = [
  {
    name: 'other addresses, other numbers',
    ends: [['192.0.2.1', 1], ['192.0.2.2', 2], ['192.0.2.3', 3], ['192.0.2.4', 4]],
    counter: 'rx_drop_no_qp',
  },
  {
    name: 'other addresses, the same QPNs, PSNs and keys',
    ends: [['192.0.2.1', 1], ['192.0.2.2', 2], ['192.0.2.3', 1], ['192.0.2.4', 2]],
    counter: 'rx_drop_address',
  },
  {
    name: 'the same addresses, other QPNs and keys',
    ends: [['192.0.2.1', 1], ['192.0.2.2', 2], ['192.0.2.1', 3], ['192.0.2.2', 4]],
    counter: 'rx_drop_no_qp',
  },
] as const; // biome-ignore format: one line a world

type Ends = readonly [Player, Player, Player, Player];

async function world(ends: (typeof WORLDS)[number]['ends'], isCrossed: (nowNs: number) => boolean) {
  const events = new EventQueue();
  const players: Player[] = [];
  for (const [address, seed] of ends) players.push(await newPlayer(events, address, seed));
  const [a, b, c, d] = players as unknown as Ends;
  await connectPlayers(a, b);
  await connectPlayers(c, d);
  const wire = (from: Player, right: Player, wrong: Player) =>
    lay(from.host, events, RATE_BPS, (_, nowNs) => [
      { to: (isCrossed(nowNs) ? wrong : right).host, afterNs: FLIGHT_NS },
    ]);
  wire(a, b, d);
  wire(c, d, b);
  wire(b, a, c);
  wire(d, c, a);
  return { events, a, b, c, d };
}

/** `from` sends numbered messages of its own pattern to `to`, half as SENDs, half as WRITEs. */
function post(from: Player, to: Player, seed: number): void {
  from.mr.bytes.set(pattern(MESSAGE_BYTES, seed));
  for (let k = 0; k < MESSAGES; k++) {
    const sges = [from.mr.sge(0, MESSAGE_BYTES)];
    if (k % 2 === 0) {
      to.qp.postRecv({ wrId: k, sges: [to.mr.sge(MESSAGE_BYTES, MESSAGE_BYTES)] });
      from.qp.postSend({ opcode: 'SEND', wrId: k, sges });
    } else {
      from.qp.postSend({ opcode: 'RDMA_WRITE', wrId: k, sges, remoteAddr: to.mr.addr, rkey: to.mr.rkey });
    }
  }
}

function check(from: Player, to: Player, seed: number): void {
  const expected = pattern(MESSAGE_BYTES, seed);
  for (const place of [0, MESSAGE_BYTES]) {
    expect(to.mr.bytes.subarray(place, place + MESSAGE_BYTES).equals(expected)).toBe(true);
  }
  const statuses = (cq: Player['cq']) => cq.poll(1024).map(({ wrId, statusName }) => `${wrId} ${statusName}`);
  expect(statuses(from.cq)).toEqual(Array.from({ length: MESSAGES }, (_, k) => `${k} SUCCESS`));
  expect(statuses(to.recvCq)).toEqual(Array.from({ length: MESSAGES / 2 }, (_, k) => `${2 * k} SUCCESS`));
}

describe.each(WORLDS)('cables crossed under traffic: $name', ({ ends, counter }) => {
  it('nothing is delivered wrongly, and both connections go on afterwards', async () => {
    const crossed = (nowNs: number) => nowNs >= CROSSED_NS.from && nowNs < CROSSED_NS.until;
    const { events, a, b, c, d } = await world(ends, crossed);
    post(a, b, 1);
    post(c, d, 2);
    runToRest(events);
    check(a, b, 1);
    check(c, d, 2);
    for (const { device } of [b, d]) {
      expect(device.counters()[counter]).toBeGreaterThan(0);
      expect(device.counters().rx_accepted).toBeGreaterThan(0);
    }
  });

  it('crossed for good: every work request fails, and no byte of the other connection arrives', async () => {
    const { events, a, b, c, d } = await world(ends, () => true);
    post(a, b, 1);
    post(c, d, 2);
    runToRest(events);
    for (const { cq } of [a, c]) {
      expect(cq.poll(1024).map(({ statusName }) => statusName)).toEqual([
        'RETRY_EXC_ERR',
        ...Array(MESSAGES - 1).fill('WR_FLUSH_ERR'),
      ]);
    }
    for (const { mr, recvCq, device } of [b, d]) {
      expect(mr.bytes.every((byte) => byte === 0)).toBe(true);
      expect(recvCq.poll(1024)).toEqual([]);
      expect(device.counters().rx_accepted).toBe(0);
    }
  });
});
