/**
 * What a stranger can do who sends from the peer's address, in virtual time: from another UDP source port, ahead of the expected PSN, and with
 * answers to requests that were never sent. In each an honest peer goes on being served.
 */

import { describe, expect, it } from 'vitest';
import type { QpAttr } from '../../src/verbs/qp-attributes.js';
import {
  ack,
  connectToPeer,
  LoneNic,
  type LoneNicOptions,
  MTU,
  nak,
  PEER_SOURCE_PORT,
  pattern,
} from '../support/lone-nic.js';

const STRANGER = 40_000;
const HONEST = pattern(64, 1);
const FORGED = pattern(64, 2);

/** A WRITE of the peer, or of who says that he is; it asks for an acknowledgement. */
function write(nic: LoneNic, at: number, payload: Uint8Array, sourcePort = PEER_SOURCE_PORT, place = at): void {
  const va = nic.mr.addr + BigInt(place * payload.length);
  nic.deliver(nic.craftRequest('RDMA_WRITE_ONLY', at, { va, ackReq: true }, payload), { sourcePort });
}

/** Events reach the program after the packet that caused them. */
async function eventsOf(nic: LoneNic): Promise<string[]> {
  await nic.state();
  return nic.asyncEvents;
}

const memory = (nic: LoneNic, place: number) => nic.mr.bytes.subarray(place * 64, place * 64 + 64);

describe('the UDP source port of the peer', () => {
  const of = (attr: QpAttr, options: LoneNicOptions = {}) => LoneNic.create({ ...options, attr });

  it.each([
    ['told', PEER_SOURCE_PORT],
    ['learned', 'learn' as const],
  ])('when %s is the only one; the event comes once a connection', async (_, remoteSourcePort) => {
    const nic = await of({ remoteSourcePort });
    write(nic, 0, HONEST);
    expect(nic.take()).toMatchObject([ack(0, 1)]);
    for (let n = 0; n < 5; n++) write(nic, 1, FORGED, STRANGER);
    expect(nic.take()).toEqual([]);
    write(nic, 1, HONEST);
    expect(nic.take()).toMatchObject([ack(1, 2)]);
    expect(memory(nic, 1).equals(HONEST)).toBe(true);
    expect(nic.device.counters()).toMatchObject({ rx_drop_source_port: 5, rx_accepted: 2, duplicate_request: 0 });
    expect(await eventsOf(nic)).toEqual(['QP_SOURCE_PORT']);
    expect((await nic.qp.query()).remoteSourcePort).toBe(PEER_SOURCE_PORT);
  });

  it('is not checked where the program lets any pass', async () => {
    const nic = await of({ remoteSourcePort: 'any' });
    write(nic, 0, HONEST);
    write(nic, 1, FORGED, STRANGER);
    expect(memory(nic, 1).equals(FORGED)).toBe(true);
    expect((await nic.qp.query()).remoteSourcePort).toBe('any');
  });

  it('is learned from what moves the connection on, and from nothing else', async () => {
    const nic = await of({ remoteSourcePort: 'learn' });
    const strange = { sourcePort: STRANGER };
    write(nic, -1, FORGED, STRANGER); // Behind the expected PSN,
    write(nic, 7, FORGED, STRANGER); // ahead of it,
    nic.deliver(nic.craftRequest('RDMA_WRITE_ONLY', 0, {}, FORGED), { bit: 300, ...strange }); // with a wrong ICRC,
    nic.deliver(nic.craftRequest('SEND_ONLY', 0, {}, FORGED), strange); // without a receive for it,
    nic.congestionNotification(strange); // about congestion.
    expect((await nic.qp.query()).remoteSourcePort).toBe('learn');
    nic.take();
    write(nic, 0, HONEST);
    expect((await nic.qp.query()).remoteSourcePort).toBe(PEER_SOURCE_PORT);
    expect(nic.device.counters().rx_drop_source_port).toBe(0);
  });

  it('is learned from an acknowledgement of what is in flight, too', async () => {
    const nic = await of({ remoteSourcePort: 'learn' });
    nic.qp.postSend({ opcode: 'SEND', wrId: 1, sges: [nic.mr.sge(0, 8)] });
    nic.take();
    nic.ack(-1);
    nic.ack(1);
    expect((await nic.qp.query()).remoteSourcePort).toBe('learn');
    nic.ack(0);
    expect((await nic.qp.query()).remoteSourcePort).toBe(PEER_SOURCE_PORT);
  });

  it('is forgotten by RESET', async () => {
    const nic = await of({ remoteSourcePort: 'learn' });
    write(nic, 0, HONEST);
    await nic.qp.modify({ state: 'RESET' });
    await connectToPeer(nic.qp, 'RTS', { remoteSourcePort: 'learn' });
    write(nic, 0, HONEST, STRANGER);
    expect((await nic.qp.query()).remoteSourcePort).toBe(STRANGER);
    expect(nic.device.counters().rx_drop_source_port).toBe(0);
  });

  it('may be set anew while the connection runs', async () => {
    const nic = await of({ remoteSourcePort: 'learn' });
    write(nic, 0, HONEST);
    await nic.qp.modify({ remoteSourcePort: 'learn' });
    write(nic, 1, HONEST, STRANGER);
    await nic.qp.modify({ remoteSourcePort: 5000 });
    write(nic, 2, HONEST, 5000);
    expect(nic.take()).toMatchObject([ack(2, 3)]);
    expect(nic.device.counters().rx_drop_source_port).toBe(0);
  });

  it.each([-1, 65_536, 65_537, 65_538, 1.5, Number.NaN, 'some', '', null])('is refused when it is %s', async (port) => {
    const nic = await of({}, { state: 'INIT' });
    const code = expect.stringMatching(/ERR_ROCE_OUT_OF_RANGE|ERR_ROCE_UNKNOWN_NAME/);
    await expect(nic.qp.modify({ remoteSourcePort: port as 'any' })).rejects.toMatchObject({ code });
  });

  it.each([
    [PEER_SOURCE_PORT, 1],
    ['learn' as const, 0],
  ])(
    'binds CNPs only where it was told (%s): NICs exist that send them from port 0',
    async (remoteSourcePort, dropped) => {
      const nic = await of({ remoteSourcePort });
      write(nic, 0, HONEST);
      nic.congestionNotification({ sourcePort: 0 });
      expect(nic.device.counters()).toMatchObject({ rx_drop_source_port: dropped, rp_cnp_ignored: 1 - dropped });
    },
  );

  it('UC: is learned from a packet in sequence', async () => {
    const nic = await of({ remoteSourcePort: 'learn' }, { qp: { type: 'UC' } });
    const send = (at: number, payload: Uint8Array, sourcePort = PEER_SOURCE_PORT) =>
      nic.deliver(nic.craftRequest('RDMA_WRITE_ONLY', at, {}, payload), { sourcePort });
    send(900, FORGED, STRANGER); // UC takes a message with any PSN.
    send(0, HONEST);
    send(1, HONEST);
    send(2, FORGED, STRANGER);
    expect(memory(nic, 0).equals(HONEST)).toBe(true);
    expect(nic.device.counters().rx_drop_source_port).toBe(1);
  });
});

describe('selective repeat', () => {
  const of = (attr: QpAttr = {}) => LoneNic.create({ attr: { recovery: 'selective-repeat', ...attr } });

  it('keeps nothing until it knows the port of the peer', async () => {
    const nic = await of({ remoteSourcePort: 'learn' });
    write(nic, 1, FORGED, STRANGER);
    expect(nic.take()).toMatchObject([nak(0x60, 0)]);
    write(nic, 0, HONEST);
    expect(nic.take()).toMatchObject([ack(0, 1)]);
    write(nic, 1, HONEST);
    expect(memory(nic, 1).equals(HONEST)).toBe(true);
    expect(nic.device.counters().reorder_stored).toBe(0);
  });

  it.each([
    [128, undefined],
    [64, 64],
    [1024, 100_000],
  ])('takes packets less than %i ahead when the peer was told %s', async (span, inflightPackets) => {
    const nic = await of(inflightPackets === undefined ? {} : { inflightPackets });
    write(nic, span - 1, HONEST, PEER_SOURCE_PORT, 0);
    write(nic, span, FORGED, PEER_SOURCE_PORT, 0);
    expect(nic.device.counters()).toMatchObject({ reorder_stored: 1, reorder_dropped: 1 });
  });

  it.each([
    ['before', [FORGED, HONEST]],
    ['behind', [HONEST, FORGED]],
  ])('with a forged packet %s the honest one keeps neither, and the stream goes on', async (_, copies) => {
    const nic = await of();
    for (const payload of copies) write(nic, 2, payload);
    write(nic, 1, HONEST);
    write(nic, 0, HONEST);
    const answers = nic.take();
    expect(answers.at(-1)).toMatchObject(ack(1, 2));
    expect(memory(nic, 2).every((byte) => byte === 0)).toBe(true);
    write(nic, 2, HONEST); // Not acknowledged: sent again.
    expect(nic.take()).toMatchObject([ack(2, 3)]);
    for (const place of [0, 1, 2]) expect(memory(nic, place).equals(HONEST)).toBe(true);
    expect(nic.device.counters()).toMatchObject({ reorder_conflicts: 1, reorder_stored: 2 });
    expect(await eventsOf(nic)).toEqual(['QP_REORDER_CONFLICT']);
  });

  it('takes honest copies for what they are', async () => {
    const nic = await of();
    for (const at of [2, 1, 2, 1, 0, 2, 1]) write(nic, at, HONEST);
    expect(nic.device.counters()).toMatchObject({ reorder_conflicts: 0, reorder_stored: 4, duplicate_request: 2 });
    expect(await eventsOf(nic)).toEqual([]);
  });

  it('tells of a forged packet that was executed when the honest one arrives', async () => {
    const nic = await of();
    write(nic, 1, FORGED);
    write(nic, 0, HONEST);
    expect(memory(nic, 1).equals(FORGED)).toBe(true); // A right guess: window / 2^24 each.
    expect(await eventsOf(nic)).toEqual([]);
    write(nic, 1, HONEST);
    expect(nic.device.counters()).toMatchObject({ reorder_conflicts: 1, duplicate_request: 1 });
    expect(await eventsOf(nic)).toEqual(['QP_REORDER_CONFLICT']);
  });
});

describe('an acknowledgement of what was never sent', () => {
  const forgeries: ReadonlyArray<readonly [string, (nic: LoneNic) => void]> = [
    ['an ACK', (nic) => nic.ack(2)],
    ['an ACK far ahead', (nic) => nic.ack(100_000)],
    ['a sequence NAK', (nic) => nic.ack(2, 0x60)],
    ['a fatal NAK', (nic) => nic.ack(2, 0x62)],
    ['an RNR NAK', (nic) => nic.ack(2, 0x2c)],
    ['a READ response', (nic) => nic.response('RDMA_READ_RESPONSE_ONLY', 2, {}, FORGED)],
    ['a SACK', (nic) => nic.sack(3, Uint8Array.of(1, 0, 0, 0))],
    ['a bit of a SACK', (nic) => nic.sack(0, Uint8Array.of(0b10, 0, 0, 0))],
  ];

  it.each(forgeries)('%s: is counted, told, and nothing comes of it', async (_, forge) => {
    const nic = await LoneNic.create({ attr: { recovery: 'selective-repeat' } });
    for (const wrId of [1, 2]) nic.qp.postSend({ opcode: 'SEND', wrId, sges: [nic.mr.sge(0, MTU)] });
    expect(nic.take()).toHaveLength(2);
    forge(nic);
    forge(nic);
    expect(nic.done()).toEqual([]);
    expect(nic.device.counters()).toMatchObject({ unsent_response: 2, stale_response: 0 });
    expect(await eventsOf(nic)).toEqual(['QP_UNSENT_RESPONSE']);
    expect(await nic.state()).toBe('RTS');
    nic.ack(1);
    expect(nic.done().map(({ wrId, statusName }) => [wrId, statusName])).toEqual([
      [1, 'SUCCESS'],
      [2, 'SUCCESS'],
    ]);
  });

  it('an honest acknowledgement, also a late one, is neither', async () => {
    const nic = await LoneNic.create();
    for (const wrId of [1, 2]) nic.qp.postSend({ opcode: 'SEND', wrId, sges: [nic.mr.sge(0, MTU)] });
    nic.take();
    for (const at of [1, 0, 1]) nic.ack(at);
    expect(nic.device.counters()).toMatchObject({ unsent_response: 0, stale_response: 2 });
    expect(await eventsOf(nic)).toEqual([]);
  });
});
