/** Bugs that other stacks have had and that hand-made packets show: each test would catch its bug here. */

import { describe, expect, it } from 'vitest';
import { IpAddress } from '../../../src/packet/address.js';
import { IcrcFlow, sealIcrc } from '../../../src/packet/icrc.js';
import { emitRoce } from '../../../src/packet/roce.js';
import { ack, LoneNic, MTU, NIC_ADDRESS, nak, PEER_ADDRESS, pattern, rcOpcode } from '../../support/lone-nic.js';

describe('bug 05: an answer that arrives inside the call that sends', () => {
  it('finds the request accounted for', async () => {
    // A requester that notes the PSN only after the packet has left takes the ACK for one of something never sent.
    const nic = await LoneNic.create();
    let answered = 0;
    nic.host.connect((batch) => {
      expect(batch.count).toBe(1);
      nic.ack(answered++);
      return nic.nowNs;
    });
    for (let wrId = 0; wrId < 10; wrId++) nic.qp.postSend({ opcode: 'SEND', wrId, sges: [nic.mr.sge(0, 10)] });
    expect(nic.done().map((wc) => [wc.wrId, wc.status])).toEqual(Array.from({ length: 10 }, (_, n) => [n, 0]));
    expect(nic.device.counters().stale_response).toBe(0);
    expect(nic.advance(1e9)).toEqual([]);
    expect(answered).toBe(10);
  });
});

describe('bug 07: lengths', () => {
  const flow = new IcrcFlow(PEER_ADDRESS, NIC_ADDRESS, 0xc0de, 4791);

  it.each(Array.from({ length: 64 }, (_, opcode) => opcode))(
    'opcode %i cut to every length, with every pad count, is never more than a drop',
    async (opcode) => {
      // Payload length = datagram - headers - pad - ICRC goes below zero when nobody looks; so must not our reads.
      const nic = await LoneNic.create();
      nic.qp.postRecv({ sges: [nic.mr.sge(0, 40)] });
      let delivered = 0;
      for (let length = 0; length <= 60; length++) {
        for (let pad = 0; pad < 4; pad++) {
          const bytes = new Uint8Array(length);
          const header = emitRoce({ opcode: rcOpcode('SEND_ONLY'), destQpn: nic.qp.qpn, psn: 0x800000, ackReq: true });
          bytes.set(header.subarray(0, Math.min(12, length)));
          if (length > 1) {
            bytes[0] = opcode;
            bytes[1] = pad << 4;
          }
          if (length >= 16) sealIcrc(flow, bytes, 0, length, 0, undefined);
          nic.host.receive({
            bytes,
            offset: 0,
            length,
            source: PEER_ADDRESS,
            sourcePort: 0xc0de,
            destination: NIC_ADDRESS,
            destinationPort: 4791,
            ecn: 0,
            dscp: 0,
            ipId: 0,
          });
          delivered++;
          nic.take();
        }
      }
      const counters = nic.device.counters();
      const drops = Object.entries(counters).filter(
        ([name]) => name.startsWith('rx_drop') || name === 'rx_icrc_errors',
      );
      expect(counters.rx_accepted + drops.reduce((sum, [, count]) => sum + count, 0)).toBe(delivered);
      expect(nic.mr.bytes.every((byte) => byte === 0)).toBe(true);
      // It still works.
      nic.request('RDMA_WRITE_ONLY', 0, { ackReq: true }, pattern(8));
      expect(nic.take()).toMatchObject([ack(0, 1)]);
    },
  );
});

describe('bug 09: the length rule of the place in the message', () => {
  it.each([
    ['SEND_FIRST', MTU - 1],
    ['RDMA_WRITE_FIRST', MTU - 1],
    ['SEND_FIRST', 0],
  ])('%s with %i bytes is refused', async (name, size) => {
    // A mask tested against the opcode number instead of its properties never hits, and short FIRST packets pass.
    const nic = await LoneNic.create();
    nic.qp.postRecv({ sges: [nic.mr.sge()] });
    nic.request(name, 0, { dmaLength: 2 * MTU }, pattern(size));
    expect(nic.take()).toMatchObject([nak(0x61, 0)]);
  });
});

describe('bug 12: zero length with a key of nowhere', () => {
  it.each(['RDMA_WRITE_ONLY', 'RDMA_READ_REQUEST', 'RDMA_WRITE_ONLY_WITH_IMMEDIATE'])(
    '%s succeeds, again when repeated',
    async (name) => {
      // Looking the key up would refuse it; using what the lookup did not find would crash.
      const nic = await LoneNic.create();
      nic.qp.postRecv();
      for (let n = 0; n < 2; n++) {
        nic.request(name, 0, { rkey: 0xdeadbeef, va: 0xdead_beef_dead_beefn, dmaLength: 0, ackReq: true });
        expect(nic.take()).toMatchObject([{ at: 0, syndrome: 0x1f, msn: 1 }]);
      }
      expect(await nic.state()).toBe('RTS');
    },
  );

  it('is posted without a key as well', async () => {
    const nic = await LoneNic.create();
    const nowhere = { remoteAddr: 0n, rkey: 0, sges: [{ addr: 0n, length: 0, lkey: 0 }] };
    nic.qp.postSend({ opcode: 'RDMA_WRITE', ...nowhere }, { opcode: 'RDMA_READ', ...nowhere });
    expect(nic.take()).toMatchObject([{ dmaLength: 0 }, { dmaLength: 0 }]);
    nic.response('RDMA_READ_RESPONSE_ONLY', 1);
    expect(nic.done()).toMatchObject([{ status: 0 }, { status: 0 }]);
  });
});

describe('bug 11: access rights', () => {
  it('an atomic on a region that allows remote writes only is refused', async () => {
    // "Any of the bits" instead of "all of them" would let it through.
    const nic = await LoneNic.create({ mrAccess: 1 | 2 });
    nic.request('FETCH_ADD', 0, { swapAdd: 1n });
    expect(nic.take()).toMatchObject([nak(0x62, 0)]);
    expect(nic.mr.bytes.readBigUInt64LE(0)).toBe(0n);
  });
});

describe('bug 08: a range that wraps round', () => {
  it.each([2n ** 64n - 8n, 2n ** 64n - 1n, 2n ** 63n])('16 bytes at %i of a region at 0 are refused', async (va) => {
    // base <= va && va + len <= base + size holds when the sum wraps.
    const nic = await LoneNic.create();
    const region = await nic.pd.regMr(4096, 15, { iova: 0n });
    nic.request('RDMA_WRITE_ONLY', 0, { va, rkey: region.rkey }, pattern(16));
    expect(nic.take()).toMatchObject([nak(0x62, 0)]);
    expect(region.bytes.every((byte) => byte === 0)).toBe(true);
  });
});

describe('bug 18: the byte order of the ICRC', () => {
  it('on the wire is that of the published vector, least significant byte first', () => {
    // RC SEND_ONLY 192.0.2.1 -> 192.0.2.2, identification 0x1234, "hello" and three pad bytes: ICRC a1 8a 5a 39.
    const packet = emitRoce({ opcode: 4, destQpn: 0x11, psn: 0x123456, ackReq: true }, Buffer.from('hello'));
    const bytes = new Uint8Array(packet.length + 4);
    bytes.set(packet);
    const vectorFlow = new IcrcFlow(IpAddress.parse('192.0.2.1'), IpAddress.parse('192.0.2.2'), 0xc000, 4791);
    sealIcrc(vectorFlow, bytes, 0, bytes.length, 0x1234, undefined);
    expect(Buffer.from(bytes.subarray(-4)).toString('hex')).toBe('a18a5a39');
  });
});

describe('bug 20: a flood of acknowledgements', () => {
  it('is dealt with one by one: timers fire meanwhile, requests are answered', async () => {
    // A completer that loops until its queue is empty never returns while the flood lasts.
    const nic = await LoneNic.create();
    nic.qp.postSend({ opcode: 'SEND', wrId: 1, sges: [nic.mr.sge(0, 8)] });
    nic.take();
    let retries = 0;
    for (let n = 0; n < 20_000; n++) {
      nic.ack(n % 2 === 0 ? -1 : 5000);
      if (n % 100 === 0) retries += nic.advance(1e6).length;
    }
    expect(retries).toBeGreaterThanOrEqual(2);
    nic.request('RDMA_WRITE_ONLY', 0, { ackReq: true }, pattern(8));
    expect(nic.take()).toMatchObject([ack(0, 1)]);
    expect(nic.device.counters()).toMatchObject({ stale_response: 10_000, unsent_response: 10_000 });
  });

  it('of NAKs makes one retry, not one each', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend({ opcode: 'SEND', wrId: 1, sges: [nic.mr.sge(0, 8)] });
    nic.take();
    for (let n = 0; n < 1000; n++) nic.ack(0, 0x60);
    expect(nic.take()).toHaveLength(1);
  });
});

describe('bug 29: two packets that change places', () => {
  it('make one NAK, however many follow', async () => {
    // Answering every packet behind the gap starts go-back-N anew each time: a storm of duplicates.
    const nic = await LoneNic.create();
    nic.request('RDMA_WRITE_ONLY', 0, {}, pattern(8));
    nic.request('RDMA_WRITE_ONLY', 2, {}, pattern(8));
    expect(nic.take()).toMatchObject([nak(0x60, 1)]);
    for (let n = 3; n < 20; n++) {
      nic.request('RDMA_WRITE_ONLY', n, { ackReq: true }, pattern(8));
      expect(nic.take()).toEqual([]);
    }
    nic.request('RDMA_WRITE_ONLY', 1, { ackReq: true }, pattern(8));
    expect(nic.take()).toMatchObject([ack(1, 2)]);
    expect(nic.device.counters().resp_nak_sequence).toBe(1);
  });
});
