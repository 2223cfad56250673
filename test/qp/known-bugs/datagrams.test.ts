/** UD queue pairs, which connection management stands on. */

import { describe, expect, it } from 'vitest';
import { IpAddress } from '../../../src/packet/address.js';
import type { QueuePair } from '../../../src/verbs/queue-pair.js';
import { createPair, type Pair, type Player } from '../../support/pair.js';

const GRH = 40;
const QKEY = 0x11111111;

async function udQp(player: Player, type: 'UD' | 'GSI', qkey = QKEY): Promise<QueuePair> {
  const qp = await player.pd.createQp({ type, sendCq: player.cq, recvCq: player.recvCq });
  await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, qkey });
  await qp.modify({ state: 'RTR' });
  await qp.modify({ state: 'RTS', sqPsn: 5 });
  return qp;
}

async function setUp(type: 'UD' | 'GSI', addresses?: readonly [string, string]) {
  const pair: Pair = await createPair(addresses === undefined ? {} : { addresses });
  const from = await udQp(pair.a, type);
  const to = await udQp(pair.b, type);
  const ah = await pair.a.pd.createAh(pair.b.host.address);
  return { pair, from, to, ah };
}

describe('bug 10: datagrams are not measured by the rules of RC messages', () => {
  // An ONLY packet longer than an RC connection's path MTU, or the 256-byte MAD of connection management, is none of its business.
  it.each([0, 1, 256, 257, 2048, 4096])('%i bytes arrive behind 40 bytes of GRH', async (size) => {
    const { pair, from, to, ah } = await setUp('UD');
    const { a, b } = pair;
    for (let i = 0; i < size; i++) a.mr.bytes[i] = (i * 5 + 1) & 255;
    to.postRecv({ wrId: 3, sges: [b.mr.sge(0, GRH + size)] });
    from.postSend({ opcode: 'SEND', ah, remoteQpn: to.qpn, remoteQkey: QKEY, sges: [a.mr.sge(0, size)] });
    expect(pair.completions(a.cq, 1)).toMatchObject([{ status: 0 }]);
    expect(pair.completions(b.recvCq, 1)).toMatchObject([
      { wrId: 3, status: 0, byteLen: GRH + size, sourceQpn: from.qpn },
    ]);
    expect(b.mr.bytes.subarray(GRH, GRH + size).equals(a.mr.bytes.subarray(0, size))).toBe(true);
    // IPv4: 20 zero bytes, then the IP header.
    expect(b.mr.bytes.subarray(0, 20).equals(Buffer.alloc(20))).toBe(true);
    expect([...b.mr.bytes.subarray(32, 40)]).toEqual([192, 0, 2, 1, 192, 0, 2, 2]);
  });

  it('IPv6 shows its whole header', async () => {
    const { pair, from, to, ah } = await setUp('UD', ['2001:db8::1', '2001:db8::2']);
    to.postRecv({ sges: [pair.b.mr.sge(0, 100)] });
    from.postSend({ opcode: 'SEND', ah, remoteQpn: to.qpn, remoteQkey: QKEY, inline: Buffer.from('six') });
    expect(pair.completions(pair.b.recvCq, 1)).toMatchObject([{ byteLen: GRH + 3 }]);
    const header = pair.b.mr.bytes.subarray(0, GRH);
    expect(header[0] >> 4).toBe(6);
    expect(IpAddress.fromBytes(header.subarray(8, 24)).text).toBe('2001:db8::1');
    expect(IpAddress.fromBytes(header.subarray(24, 40)).text).toBe('2001:db8::2');
  });

  it('a MAD goes from QP1 to QP1', async () => {
    const { pair, from, to, ah } = await setUp('GSI');
    to.postRecv({ sges: [pair.b.mr.sge(0, 296)] });
    from.postSend({ opcode: 'SEND', ah, remoteQpn: 1, remoteQkey: QKEY, sges: [pair.a.mr.sge(0, 256)] });
    expect(pair.completions(pair.b.recvCq, 1)).toMatchObject([{ byteLen: 296, sourceQpn: 1, qpn: to.qpn }]);
  });
});

describe('a datagram', () => {
  it('with immediate data', async () => {
    const { pair, from, to, ah } = await setUp('UD');
    to.postRecv({ sges: [pair.b.mr.sge()] });
    from.postSend({ opcode: 'SEND_WITH_IMM', immediate: 99, ah, remoteQpn: to.qpn, remoteQkey: QKEY });
    expect(pair.completions(pair.b.recvCq, 1)).toMatchObject([{ immediate: 99, byteLen: GRH }]);
  });

  it('with another Q_Key is dropped and counted', async () => {
    const { pair, from, to, ah } = await setUp('UD');
    to.postRecv({ sges: [pair.b.mr.sge()] });
    from.postSend({ opcode: 'SEND', ah, remoteQpn: to.qpn, remoteQkey: QKEY + 1 });
    pair.completions(pair.a.cq, 1);
    pair.run();
    expect(pair.b.recvCq.poll()).toEqual([]);
    expect(pair.b.device.counters().rx_drop_qkey).toBe(1);
  });

  it('that finds no receive is dropped; the next one is not', async () => {
    const { pair, from, to, ah } = await setUp('UD');
    const send = () =>
      from.postSend({ opcode: 'SEND', ah, remoteQpn: to.qpn, remoteQkey: QKEY, inline: Buffer.alloc(4) });
    send();
    pair.run();
    expect(pair.b.device.counters().out_of_buffer).toBe(1);
    to.postRecv({ wrId: 1, sges: [pair.b.mr.sge()] });
    send();
    expect(pair.completions(pair.b.recvCq, 1)).toMatchObject([{ wrId: 1, status: 0 }]);
  });

  it('too long for the receive is a local length error there, and the QP goes on', async () => {
    const { pair, from, to, ah } = await setUp('UD');
    to.postRecv({ wrId: 1, sges: [pair.b.mr.sge(0, GRH + 3)] });
    to.postRecv({ wrId: 2, sges: [pair.b.mr.sge(0, GRH + 4)] });
    for (let n = 0; n < 2; n++) {
      from.postSend({ opcode: 'SEND', ah, remoteQpn: to.qpn, remoteQkey: QKEY, inline: Buffer.alloc(4) });
    }
    expect(pair.completions(pair.b.recvCq, 2).map((wc) => [wc.wrId, wc.status])).toEqual([
      [1, 1],
      [2, 0],
    ]);
  });

  it('longer than the port carries is a local length error', async () => {
    const { pair, from, to, ah } = await setUp('UD');
    from.postSend({ opcode: 'SEND', ah, remoteQpn: to.qpn, remoteQkey: QKEY, sges: [pair.a.mr.sge(0, 4097)] });
    expect(pair.completions(pair.a.cq, 1)).toMatchObject([{ status: 1 }]);
  });

  it.each(['no address handle', 'one of another protection domain', 'one that is closed'])(
    'with %s is a local operation error',
    async (which) => {
      const { pair, from, to, ah } = await setUp('UD');
      const foreign = await (await pair.a.device.createPd()).createAh(pair.b.host.address);
      await ah.close();
      const handle = which === 'no address handle' ? {} : { ah: which === 'one that is closed' ? ah : foreign };
      from.postSend({ opcode: 'SEND', ...handle, remoteQpn: to.qpn, remoteQkey: QKEY });
      expect(pair.completions(pair.a.cq, 1)).toMatchObject([{ status: 2 }]);
    },
  );
});

describe('a UD queue pair', () => {
  it('does not hear RC packets, nor an RC one datagrams', async () => {
    const { pair, from, to, ah } = await setUp('UD');
    from.postSend({ opcode: 'SEND', ah, remoteQpn: pair.b.qp.qpn, remoteQkey: QKEY });
    pair.run();
    expect(pair.b.device.counters().rx_drop_qp_type).toBe(1);
    expect(to.state).toBe('RTS');
  });

  it('is drained at once in SQD, and sends what was posted meanwhile when it goes on', async () => {
    const { pair, from, to, ah } = await setUp('UD');
    const drained: QueuePair[] = [];
    pair.a.device.events.on('SQ_DRAINED', (qp) => drained.push(qp));
    to.postRecv({ wrId: 7, sges: [pair.b.mr.sge(0, 100)] });
    await from.modify({ state: 'SQD', enSqdAsyncNotify: true });
    from.postSend({ opcode: 'SEND', ah, remoteQpn: to.qpn, remoteQkey: QKEY, inline: Buffer.from('later') });
    pair.run();
    expect(drained).toEqual([from]);
    expect(pair.b.recvCq.poll()).toEqual([]);
    await from.modify({ state: 'RTS' });
    expect(pair.completions(pair.b.recvCq, 1)).toMatchObject([{ wrId: 7, status: 0 }]);
  });

  it('flushes in ERR and forgets in RESET', async () => {
    const { pair, to } = await setUp('UD');
    const fatal: QueuePair[] = [];
    pair.b.device.events.on('QP_FATAL', (qp) => fatal.push(qp));
    to.postRecv({ wrId: 1 });
    await to.modify({ state: 'ERR' });
    expect(fatal).toEqual([]); // It is what the owner wanted.
    expect(pair.b.recvCq.poll()).toMatchObject([{ wrId: 1, status: 5 }]);
    await to.modify({ state: 'RESET' });
    await to.modify({ state: 'INIT', pkeyIndex: 0, port: 1, qkey: QKEY });
    to.postRecv({ wrId: 2 });
    await to.modify({ state: 'RESET' });
    await to.modify({ state: 'INIT', pkeyIndex: 0, port: 1, qkey: QKEY });
    to.postRecv({ wrId: 3 });
    await to.modify({ state: 'ERR' });
    expect(pair.b.recvCq.poll()).toMatchObject([{ wrId: 3, status: 5 }]);
  });
});
