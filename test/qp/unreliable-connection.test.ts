/** UC queue pairs: what a message needs to be delivered, what becomes of all others, and that nothing else happens on the wire. */

import { describe, expect, it } from 'vitest';
import { highOfBig, lowOfBig } from '../../src/core/u64.js';
import { FRAME_OK, FrameInfo, parseFrame } from '../../src/packet/frame.js';
import { psnAdd, psnDiff } from '../../src/packet/psn.js';
import { emitRoce, PARSE_OK, parseRoce, RocePacket } from '../../src/packet/roce.js';
import { Access } from '../../src/verbs/access.js';
import type { SendWorkRequest } from '../../src/verbs/send-work-request.js';
import { connectToPeer, LoneNic, type LoneNicOptions, MTU, pattern, RQ_START } from '../support/lone-nic.js';
import { createPair } from '../support/pair.js';
import { readPackets } from '../support/pcapng.js';
import { runToRest } from '../support/virtual-time.js';

const full = pattern(MTU);
const short = pattern(100);

const createUc = (options: LoneNicOptions = {}) => LoneNic.create({ ...options, qp: { type: 'UC', ...options.qp } });

/** The packets of a capture of Linux Soft-RoCE: twelve packets of three SENDs and two WRITEs between UC queue pairs. */
function capturedPackets(): { packet: RocePacket; payload: Buffer }[] {
  return readPackets(new URL('../golden/uc-v4.pcapng', import.meta.url)).map((frame) => {
    const info = new FrameInfo();
    expect(parseFrame(frame, 0, frame.length, info)).toBe(FRAME_OK);
    const packet = new RocePacket();
    const bytes = Buffer.from(frame.subarray(info.payloadOffset, info.payloadOffset + info.payloadBytes));
    expect(parseRoce(bytes, 0, bytes.length, packet)).toBe(PARSE_OK);
    return { packet, payload: bytes.subarray(packet.payloadOffset, packet.payloadOffset + packet.payloadBytes) };
  });
}

describe('the messages of a Linux peer', () => {
  const captured = capturedPackets();

  it('are delivered as that peer sent them', async () => {
    const nic = await createUc({ attr: { pathMtu: 1024 } });
    for (let n = 0; n < 4; n++) nic.qp.postRecv({ wrId: n, sges: [nic.mr.sge(n * 4096, 4096)] });
    const firstPsn = captured[0].packet.psn;
    for (const { packet, payload } of captured) {
      const psn = psnAdd(RQ_START, psnDiff(packet.psn, firstPsn));
      const va = nic.mr.addr + 32768n;
      const place = { vaHigh: highOfBig(va), vaLow: lowOfBig(va), rkey: nic.mr.rkey };
      nic.deliver(emitRoce({ ...packet, ...place, destQpn: nic.qp.qpn, psn }, payload));
    }
    expect(nic.received()).toMatchObject([
      { wrId: 0, status: 0, opcode: 'RECV', byteLen: 10 },
      { wrId: 1, status: 0, opcode: 'RECV', byteLen: 2500 },
      { wrId: 2, status: 0, opcode: 'RECV', byteLen: 1030, immediate: 0x99aabbcc },
      { wrId: 3, status: 0, opcode: 'RECV_RDMA_WITH_IMM', byteLen: 2049, immediate: 0xddeeff00 },
    ]);
    const secondMessage = Buffer.concat(captured.slice(1, 4).map(({ payload }) => payload));
    expect(nic.mr.bytes.subarray(4096, 4096 + 2500)).toEqual(secondMessage);
    const lastWrite = Buffer.concat(captured.slice(9).map(({ payload }) => payload));
    expect(nic.mr.bytes.subarray(32768, 32768 + 2049)).toEqual(lastWrite);
    expect(nic.take()).toEqual([]);
    expect(nic.device.counters()).toMatchObject({ rx_accepted: 12, rx_send_messages: 3, rx_write_requests: 2 });
  });

  it('leave our own queue pair in the same packets', async () => {
    const nic = await createUc({ attr: { pathMtu: 1024 } });
    const bytesOf = (from: number, end: number) =>
      captured.slice(from, end).reduce((sum, { payload }) => sum + payload.length, 0);
    const { vaHigh, vaLow, rkey } = captured[6].packet;
    const remote = { remoteAddr: (BigInt(vaHigh) << 32n) | BigInt(vaLow), rkey };
    const sges = (bytes: number) => [nic.mr.sge(0, bytes)];
    nic.qp.postSend(
      { opcode: 'SEND', sges: sges(bytesOf(0, 1)) },
      { opcode: 'SEND', sges: sges(bytesOf(1, 4)) },
      { opcode: 'SEND_WITH_IMM', sges: sges(bytesOf(4, 6)), immediate: 0x99aabbcc },
      { opcode: 'RDMA_WRITE', sges: sges(bytesOf(6, 9)), ...remote },
      { opcode: 'RDMA_WRITE_WITH_IMM', sges: sges(bytesOf(9, 12)), immediate: 0xddeeff00, ...remote },
    );
    const shape = (name: string, at: number, ackReq: boolean, solicited: boolean, bytes: number) =>
      `${name} ${at} ${ackReq} ${solicited} ${bytes}`;
    const firstPsn = captured[0].packet.psn;
    expect(nic.take().map((p) => shape(p.name, p.at, p.ackReq, p.solicited, p.payload.length))).toEqual(
      captured.map(({ packet, payload }) =>
        shape(packet.info.name, psnDiff(packet.psn, firstPsn), packet.ackReq, packet.solicited, payload.length),
      ),
    );
  });
});

const write = (nic: LoneNic, bytes: number, wrId = 1): SendWorkRequest => ({
  opcode: 'RDMA_WRITE',
  wrId,
  sges: [nic.mr.sge(0, bytes)],
  remoteAddr: 0x1000n,
  rkey: 7,
});

describe('as sender', () => {
  it('completes when the last packet has left, and never sends it again', async () => {
    const nic = await createUc();
    nic.qp.postSend(write(nic, 3 * MTU));
    expect(nic.take().map(({ name }) => name)).toEqual(['RDMA_WRITE_FIRST', 'RDMA_WRITE_MIDDLE', 'RDMA_WRITE_LAST']);
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 0, opcode: 'RDMA_WRITE' }]);
    expect(nic.advance(60e9)).toEqual([]);
  });

  it.each(['RDMA_READ', 'ATOMIC_FETCH_AND_ADD', 'SEND_WITH_INV'] as const)(
    'refuses %s: the send queue stops, receives go on, and the owner can go on, too',
    async (opcode) => {
      const nic = await createUc();
      nic.qp.postRecv({ wrId: 9, sges: [nic.mr.sge()] });
      const request = {
        opcode,
        wrId: 1,
        sges: [nic.mr.sge(0, 8)],
        remoteAddr: 0n,
        rkey: 1,
        add: 1n,
        invalidateRkey: 1,
      };
      nic.qp.postSend(request as SendWorkRequest, write(nic, 10, 2));
      expect(nic.done()).toMatchObject([
        { wrId: 1, statusName: 'LOC_QP_OP_ERR' },
        { wrId: 2, statusName: 'WR_FLUSH_ERR' },
      ]);
      expect(await nic.state()).toBe('SQE');
      nic.qp.postSend(write(nic, 10, 3));
      expect(nic.done()).toMatchObject([{ wrId: 3, statusName: 'WR_FLUSH_ERR' }]);
      nic.request('SEND_ONLY', 0, {}, short);
      expect(nic.received()).toMatchObject([{ wrId: 9, status: 0 }]);
      await nic.qp.modify({ state: 'RTS' });
      nic.qp.postSend(write(nic, 10, 4));
      expect(nic.take()).toHaveLength(1);
      expect(nic.done()).toMatchObject([{ wrId: 4, status: 0 }]);
    },
  );

  it('goes to ERR, not to SQE, when the completion of the failed work finds its queue full', async () => {
    const nic = await createUc();
    const cq = await nic.device.createCq(4);
    const qp = await nic.pd.createQp({ type: 'UC', sendCq: cq, recvCq: nic.recvCq });
    await connectToPeer(qp);
    qp.postSend(...[0, 1, 2, 3].map((wrId) => write(nic, 10, wrId)));
    nic.take();
    qp.postSend({ ...write(nic, 10, 4), opcode: 'RDMA_READ' } as SendWorkRequest);
    expect(nic.take()).toEqual([]);
    expect((await qp.query()).state).toBe('ERR');
    expect(cq.poll().map(({ wrId }) => wrId)).toEqual([0, 1, 2, 3]);
  });

  it('stops when its region goes away in the middle of a message', async () => {
    const nic = await createUc({ attr: { rateControl: { name: 'fixed', rateBps: 1e6 } } });
    const region = await nic.pd.regMr(4 * MTU, 0);
    nic.qp.postSend({ opcode: 'SEND', wrId: 1, sges: [region.sge()] });
    expect(nic.take()).toHaveLength(1);
    await region.close();
    nic.advance(1e9);
    expect(nic.done()).toMatchObject([{ wrId: 1, statusName: 'LOC_PROT_ERR' }]);
  });

  it('obeys its rate', async () => {
    const nic = await createUc({ attr: { rateControl: { name: 'fixed', rateBps: 100e6 } } });
    nic.qp.postSend(write(nic, 64 * MTU));
    const sent = nic.advance(1e9);
    expect(sent).toHaveLength(64);
    const bitsBetween = 63 * (MTU + 12 + 4 + 8 + 20 + 14 + 4 + 20) * 8;
    const seconds = (sent[63].timeNs - sent[0].timeNs) / 1e9;
    expect(bitsBetween / seconds / 100e6).toBeCloseTo(1, 1);
  });

  it('drains: the message in progress goes out, the next one stays', async () => {
    const nic = await createUc({ attr: { rateControl: { name: 'fixed', rateBps: 1e6 } } });
    nic.qp.postSend(write(nic, 2 * MTU, 1), write(nic, 10, 2));
    expect(nic.take()).toHaveLength(1);
    await nic.qp.modify({ state: 'SQD', enSqdAsyncNotify: true });
    expect(nic.asyncEvents).toEqual([]);
    expect(nic.advance(1e9)).toHaveLength(1);
    await Promise.resolve();
    expect(nic.asyncEvents).toEqual(['SQ_DRAINED']);
    expect(nic.done()).toMatchObject([{ wrId: 1, status: 0 }]);
    await nic.qp.modify({ state: 'RTS' });
    expect(nic.advance(1e9)).toHaveLength(1);
  });
});

describe('as receiver', () => {
  const message = pattern(3 * MTU);
  const part = (n: number) => message.subarray(n * MTU, (n + 1) * MTU);

  it('answers nothing, whatever the packet asks', async () => {
    const nic = await createUc();
    nic.request('RDMA_WRITE_ONLY', 0, { ackReq: true }, short);
    nic.request('SEND_ONLY', 1, { ackReq: true }, short);
    expect(nic.advance(1e9)).toEqual([]);
    expect(nic.mr.bytes.subarray(0, 100)).toEqual(short);
  });

  it.each([
    ['first', [1, 2]],
    ['middle', [0, 2]],
    ['last', [0, 1]],
  ])('drops a message whose %s packet is missing, and delivers the next into the same receive', async (_, arrived) => {
    const nic = await createUc();
    const names = ['SEND_FIRST', 'SEND_MIDDLE', 'SEND_LAST'];
    nic.qp.postRecv({ wrId: 1, sges: [nic.mr.sge()] });
    for (const n of arrived) nic.request(names[n], n, {}, part(n));
    expect(nic.received()).toEqual([]);
    nic.request('SEND_ONLY', 3, {}, short);
    expect(nic.received()).toMatchObject([{ wrId: 1, status: 0, byteLen: 100 }]);
    expect(nic.mr.bytes.subarray(0, 100)).toEqual(short);
    expect(nic.device.counters()).toMatchObject({ uc_messages_dropped: 1, rx_send_messages: 1 });
  });

  it('delivers the same message when nothing is missing', async () => {
    const nic = await createUc();
    nic.qp.postRecv({ wrId: 1, sges: [nic.mr.sge()] });
    nic.request('SEND_FIRST', 0, {}, part(0));
    nic.request('SEND_MIDDLE', 1, {}, part(1));
    nic.request('SEND_LAST', 2, {}, part(2));
    expect(nic.received()).toMatchObject([{ wrId: 1, status: 0, byteLen: 3 * MTU }]);
    expect(nic.mr.bytes.subarray(0, 3 * MTU)).toEqual(message);
    expect(nic.device.counters()).toMatchObject({ uc_messages_dropped: 0, out_of_sequence: 0 });
  });

  it('goes on with the next message after whole messages are lost', async () => {
    const nic = await createUc();
    for (const wrId of [1, 2]) nic.qp.postRecv({ wrId, sges: [nic.mr.sge(wrId * 1000, 1000)] });
    nic.request('SEND_ONLY', 0, {}, short);
    nic.request('SEND_ONLY', 700, {}, short);
    expect(nic.received().map(({ wrId }) => wrId)).toEqual([1, 2]);
    expect(nic.device.counters()).toMatchObject({ out_of_sequence: 1, uc_messages_dropped: 0 });
  });

  it('drops a message that comes back to front, and a late copy of a packet', async () => {
    const nic = await createUc();
    nic.qp.postRecv({ wrId: 1, sges: [nic.mr.sge()] });
    for (const n of [2, 1, 0]) nic.request(['SEND_FIRST', 'SEND_MIDDLE', 'SEND_LAST'][n], n, {}, part(n));
    nic.request('SEND_ONLY', 3, {}, short);
    nic.request('SEND_MIDDLE', 1, {}, part(1));
    expect(nic.received()).toMatchObject([{ wrId: 1, byteLen: 100 }]);
    nic.qp.postRecv({ wrId: 2, sges: [nic.mr.sge()] });
    nic.request('SEND_ONLY', 4, {}, short);
    expect(nic.received()).toMatchObject([{ wrId: 2, byteLen: 100 }]);
  });

  it('drops a SEND that finds no receive, whole, and takes the next', async () => {
    const nic = await createUc();
    nic.request('SEND_FIRST', 0, {}, part(0));
    nic.qp.postRecv({ wrId: 1, sges: [nic.mr.sge()] });
    nic.request('SEND_MIDDLE', 1, {}, part(1));
    nic.request('SEND_LAST', 2, {}, part(2));
    expect(nic.received()).toEqual([]);
    nic.request('SEND_ONLY', 3, {}, short);
    expect(nic.received()).toMatchObject([{ wrId: 1, byteLen: 100 }]);
    expect(nic.device.counters()).toMatchObject({ out_of_buffer: 1, uc_messages_dropped: 1 });
  });

  it.each([
    ['a key that is none', { rkey: 0xdead }, {}],
    ['an address outside the region', { va: 0n }, {}],
    ['a queue pair that allows no WRITE', {}, { accessFlags: 0 }],
    ['a length that is not that of the message', { dmaLength: 99 }, {}],
  ])('drops a WRITE with %s in silence, and lives', async (_, fields, attr) => {
    const nic = await createUc({ attr });
    nic.request('RDMA_WRITE_ONLY', 0, fields, short);
    expect(nic.advance(1e9)).toEqual([]);
    expect(nic.mr.bytes.subarray(0, 100)).toEqual(Buffer.alloc(100));
    expect(await nic.state()).toBe('RTS');
    nic.qp.postRecv({ wrId: 1, sges: [nic.mr.sge()] });
    nic.request('SEND_ONLY', 1, {}, short);
    expect(nic.received()).toMatchObject([{ wrId: 1, status: 0 }]);
    expect(nic.device.counters().uc_messages_dropped).toBe(1);
  });

  it('drops a SEND longer than its receive; the receive stays for the next', async () => {
    const nic = await createUc();
    nic.qp.postRecv({ wrId: 1, sges: [nic.mr.sge(0, 100)] });
    nic.request('SEND_FIRST', 0, {}, full);
    nic.request('SEND_LAST', 1, {}, short);
    nic.request('SEND_ONLY', 2, {}, short);
    expect(nic.received()).toMatchObject([{ wrId: 1, status: 0, byteLen: 100 }]);
  });

  it('stops when its own receive names memory that is not there', async () => {
    const nic = await createUc();
    nic.qp.postRecv({ wrId: 1, sges: [{ addr: 0n, length: 4096, lkey: 12345 }] });
    nic.request('SEND_ONLY', 0, {}, short);
    expect(nic.received()).toMatchObject([{ wrId: 1, statusName: 'LOC_PROT_ERR' }]);
    expect(await nic.state()).toBe('ERR');
  });

  it('hears no RC packet, and an RC queue pair no UC packet', async () => {
    const nic = await createUc();
    const packet = emitRoce({ opcode: 0x04, psn: RQ_START, destQpn: nic.qp.qpn }, short);
    nic.deliver(packet);
    expect(nic.device.counters().rx_drop_qp_type).toBe(1);
    const reliable = await LoneNic.create();
    reliable.deliver(emitRoce({ opcode: 0x24, psn: RQ_START, destQpn: reliable.qp.qpn }, short));
    expect(reliable.device.counters().rx_drop_qp_type).toBe(1);
  });

  it('answers congestion marks with notifications, and obeys those of the peer', async () => {
    const nic = await createUc({ attr: { rateControl: { name: 'dcqcn', linkRateBps: 10e9 } } });
    nic.deliver(nic.craftRequest('RDMA_WRITE_ONLY', 0, {}, short), { ecn: 3 });
    expect(nic.take().map(({ name }) => name)).toEqual(['CNP']);
    nic.qp.postSend(write(nic, 10));
    nic.take();
    nic.congestionNotification();
    expect((await nic.qp.query()).rateBps).toBe(5e9);
  });
});

describe('two of them on a link that loses one packet in ten', () => {
  it.each([1, 2, 3])('deliver whole messages only, in order (seed %i)', async (seed) => {
    const pair = await createPair({
      seed,
      qp: { type: 'UC', maxRecvWr: 256 },
      faults: 'random=0.1',
      memoryBytes: 1 << 20,
    });
    const bytes = 3000; // Three packets at MTU 1024.
    for (let n = 0; n < 200; n++) pair.b.qp.postRecv({ wrId: n, sges: [pair.b.mr.sge(n * 4096, 4096)] });
    let done = 0;
    for (let n = 0; n < 200; n++) {
      pair.a.mr.bytes.fill(n & 255, 0, bytes);
      pair.a.qp.postSend({ opcode: 'SEND_WITH_IMM', immediate: n, sges: [pair.a.mr.sge(0, bytes)] });
      runToRest(pair.events);
      done += pair.a.cq.poll(16).length;
    }
    expect(done).toBe(200);
    const received = pair.b.recvCq.poll(256);
    const { uc_messages_dropped: dropped, rx_send_messages: whole } = pair.b.device.counters();
    expect(received.length).toBe(whole);
    // A message arrives with probability 0.9^3: 146 of 200 expected, standard deviation 6.3.
    expect(whole).toBeGreaterThan(120);
    expect(whole).toBeLessThan(175);
    expect(dropped).toBeGreaterThan(0);
    for (const wc of received) {
      const sent = wc.immediate!;
      expect(wc.byteLen).toBe(bytes);
      const at = (wc.wrId as number) * 4096;
      expect(pair.b.mr.bytes.subarray(at, at + bytes).every((byte) => byte === (sent & 255))).toBe(true);
    }
    const order = received.map(({ immediate }) => immediate!);
    expect(order).toEqual([...order].sort((x, y) => x - y));
    expect(pair.a.device.counters()).toMatchObject({ tx_retransmitted: 0, rx_packets: 0, local_ack_timeout_err: 0 });
  });
});

it('can be reset and connected again', async () => {
  const pair = await createPair({ qp: { type: 'UC' } });
  pair.b.qp.postRecv({ wrId: 1, sges: [pair.b.mr.sge()] });
  await pair.b.qp.modify({ state: 'RESET' });
  expect(await pair.b.qp.query()).toMatchObject({ state: 'RESET' });
  await pair.b.qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
  await expect(pair.b.qp.modify({ state: 'RTR', recovery: 'selective-repeat' })).rejects.toMatchObject({
    code: 'ERR_ROCE_INVALID_ARGUMENT',
  });
});
