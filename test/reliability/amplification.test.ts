/**
 * What a stranger gets out of a NIC for what he sends: he sends from an address that is no peer's, or that he cannot receive at. A NIC that answers
 * more than it gets is a weapon against whoever that address belongs to.
 */

import { describe, expect, it } from 'vitest';
import { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import { randomInt, SeededRandom } from '../../src/core/random.js';
import { IpAddress } from '../../src/packet/address.js';
import { IcrcFlow, sealIcrc } from '../../src/packet/icrc.js';
import { OPCODES } from '../../src/packet/opcode.js';
import { emitRoce } from '../../src/packet/roce.js';
import { runToRest } from '../support/virtual-time.js';
import { connectPlayers, newPlayer } from './players.js';
import { lay } from './unruly-wire.js';

const STRANGER = IpAddress.parse('198.51.100.7');
const ROCE_UDP_PORT = 4791;
const DATAGRAMS = 20_000;
const OPCODE_NUMBERS = OPCODES.flatMap((info) => (info === undefined ? [] : [info.opcode]));

async function hostUnderAttack() {
  const events = new EventQueue();
  const a = await newPlayer(events, '192.0.2.1', 1);
  const b = await newPlayer(events, '192.0.2.2', 2);
  await connectPlayers(a, b);
  const uc = await b.pd.createQp({ type: 'UC', sendCq: b.cq });
  const ud = await b.pd.createQp({ type: 'UD', sendCq: b.cq });
  await ud.modify({ state: 'INIT', pkeyIndex: 0, port: 1, qkey: 0x1111 });
  await ud.modify({ state: 'RTR' });
  await ud.modify({ state: 'RTS', sqPsn: 0 });
  const answered = { toStranger: 0, toPeer: 0 };
  lay(a.host, events, 10e9, () => [{ to: b.host, afterNs: 1000 }]);
  lay(b.host, events, 10e9, ({ destination, length }) => {
    answered[destination.equals(STRANGER) ? 'toStranger' : 'toPeer'] += length;
    return destination.equals(STRANGER) ? [] : [{ to: a.host, afterNs: 1000 }];
  });
  return { events, a, b, qpns: [b.qp.qpn, uc.qpn, ud.qpn, 1], answered };
}

function datagramFrom(source: IpAddress, destination: IpAddress, packet: Uint8Array, sourcePort: number) {
  const bytes = new Uint8Array(packet.length + 4);
  bytes.set(packet);
  sealIcrc(new IcrcFlow(source, destination, sourcePort, ROCE_UDP_PORT), bytes, 0, bytes.length, 0, undefined);
  return { bytes, offset: 0, length: bytes.length, source, sourcePort, destination, destinationPort: ROCE_UDP_PORT, ecn: 3, dscp: 0, ipId: 0 }; // biome-ignore format: one thing
}

describe('a stranger who knows QPNs, PSNs and keys, and marks his packets as congested', () => {
  it('gets no byte in answer, and the peer of the connection none for him', async () => {
    const { events, a, b, qpns, answered } = await hostUnderAttack();
    const random = new SeededRandom(5).stream('stranger');
    const pick = <T>(list: readonly T[]) => list[randomInt(random, 0, list.length - 1)];
    let sentBytes = 0;
    for (let i = 0; i < DATAGRAMS; i++) {
      const packet = emitRoce(
        {
          opcode: pick(OPCODE_NUMBERS),
          psn: (a.startPsn + randomInt(random, 0, 3)) & 0xffffff,
          destQpn: pick(qpns),
          ackReq: true,
          vaHigh: Number(b.mr.addr >> 32n),
          vaLow: Number(b.mr.addr & 0xffffffffn),
          rkey: b.mr.rkey,
          dmaLength: pick([0, 64, 1 << 17]),
          qkey: pick([0x1111, 0x80010000]),
        },
        new Uint8Array(pick([0, 64, 1024])),
      );
      const datagram = datagramFrom(STRANGER, b.host.address, packet, 0xc000 + (i & 0xff));
      sentBytes += datagram.length;
      b.host.receive(datagram);
      if (i % 1000 === 0) runToRest(events);
    }
    runToRest(events);
    console.log(
      `${DATAGRAMS} datagrams, ${sentBytes} bytes: ${answered.toStranger} bytes to the stranger, ${answered.toPeer} to the peer`,
    );
    expect(answered).toEqual({ toStranger: 0, toPeer: 0 });
    expect(b.mr.bytes.every((byte) => byte === 0)).toBe(true);

    // The honest peer is served as before.
    a.mr.bytes.fill(7);
    a.qp.postSend({ opcode: 'RDMA_WRITE', sges: [a.mr.sge(0, 5000)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
    runToRest(events);
    expect(a.cq.poll()).toMatchObject([{ status: 0 }]);
    expect(b.mr.bytes.subarray(0, 5000).every((byte) => byte === 7)).toBe(true);
    expect(answered.toPeer).toBeGreaterThan(0); // What is sent is counted.
  });
});
