/** Packets that a switch has cut: the receiver asks for them at once, the sender sends them again at once, and neither believes more than that. */

import { describe, expect, it } from 'vitest';
import { VENDOR_TRIM_NAK, VENDOR_TRIMMED } from '../../src/packet/opcode.js';
import { psnAdd } from '../../src/packet/psn.js';
import { emitRoce } from '../../src/packet/roce.js';
import { ack, LoneNic, MTU, pattern, RQ_START, SQ_START } from '../support/lone-nic.js';

const multipath = () => LoneNic.create({ attr: { recovery: 'multipath' } });
/** `take` shows other packets than answers relative to the NIC's own direction. */
const trimNak = (at: number) => ({ name: 'TRIM_NAK', at: at + RQ_START - SQ_START, dscp: 48 });
const deliver = (nic: LoneNic, opcode: number, psn: number) =>
  nic.deliver(emitRoce({ opcode, psn, destQpn: nic.qp.qpn }));
const trimmed = (nic: LoneNic, at: number) => deliver(nic, VENDOR_TRIMMED, psnAdd(RQ_START, at));
const trimNakFromPeer = (nic: LoneNic, at: number) => deliver(nic, VENDOR_TRIM_NAK, psnAdd(SQ_START, at));

describe('a receiver', () => {
  it('asks at once for each packet that was cut, the expected one and later ones', async () => {
    const nic = await multipath();
    for (const at of [0, 2, 5]) {
      trimmed(nic, at);
      expect(nic.take()).toMatchObject([trimNak(at)]);
    }
    expect(nic.device.counters()).toMatchObject({ rx_trimmed: 3, trim_nak_sent: 3, resp_nak_sequence: 0 });
  });

  it('does not ask for what it has', async () => {
    const nic = await multipath();
    const va = nic.mr.addr;
    nic.request('RDMA_WRITE_ONLY', 0, { va, ackReq: true }, pattern(MTU));
    nic.request('RDMA_WRITE_ONLY', 2, { va }, pattern(MTU));
    nic.take();
    for (const at of [-1, 0, 2]) trimmed(nic, at);
    expect(nic.take()).toEqual([]);
    trimmed(nic, 1);
    expect(nic.take()).toMatchObject([trimNak(1)]);
    nic.request('RDMA_WRITE_ONLY', 1, { va, ackReq: true }, pattern(MTU));
    expect(nic.take()).toMatchObject([ack(2, 3)]);
  });

  it.each(['RESET', 'INIT'] as const)('in %s has no sender that could mean it', async (state) => {
    const nic = await LoneNic.create({ state });
    trimmed(nic, 0);
    trimNakFromPeer(nic, 0);
    expect(nic.take()).toEqual([]);
    expect(nic.device.counters()).toMatchObject({ rx_packets: 2, rx_accepted: 0, rx_drop_qp_type: 2 });
  });

  it('owes as many answers at most as there can be packets in flight, in the order of the headers', async () => {
    const nic = await multipath();
    for (let at = 0; at < 1100; at++) trimmed(nic, at);
    expect(nic.take()).toMatchObject(Array.from({ length: 1024 }, (_, at) => trimNak(at)));
  });
});

describe('a sender', () => {
  async function withPacketsInFlight(packets: number): Promise<LoneNic> {
    const nic = await multipath();
    const sges = [nic.mr.sge(0, packets * MTU)];
    nic.qp.postSend({ opcode: 'RDMA_WRITE', wrId: 1, sges, remoteAddr: 0n, rkey: 1 });
    expect(nic.take()).toHaveLength(packets);
    return nic;
  }

  it('sends the packet again at once, by another way, and no other', async () => {
    const nic = await withPacketsInFlight(8);
    trimNakFromPeer(nic, 3);
    const again = nic.take();
    expect(again).toMatchObject([{ at: 3 }]);
    trimNakFromPeer(nic, 3);
    const third = nic.take();
    expect(third).toMatchObject([{ at: 3 }]);
    expect(third[0].sourcePort).not.toBe(again[0].sourcePort);
    expect(nic.device.counters()).toMatchObject({
      trim_nak_received: 2,
      tx_retransmitted: 2,
      local_ack_timeout_err: 0,
    });
  });

  it('does not heed news of what was acknowledged, kept, or never sent', async () => {
    const nic = await withPacketsInFlight(8);
    nic.advance(1000);
    nic.ack(1);
    nic.sack(2, Uint8Array.of(0b10, 0, 0, 0)); // 2 is missing, 4 is there.
    expect(nic.take()).toEqual([]);
    for (const at of [-1, 0, 1, 4, 8, 5000]) trimNakFromPeer(nic, at);
    expect(nic.take()).toEqual([]);
    expect(nic.device.counters()).toMatchObject({ trim_nak_received: 0 });
  });
});

describe('a queue pair of another scheme', () => {
  it('takes neither', async () => {
    const nic = await LoneNic.create({ attr: { recovery: 'rack' } });
    trimmed(nic, 0);
    trimNakFromPeer(nic, 0);
    expect(nic.take()).toEqual([]);
    expect(nic.device.counters()).toMatchObject({ rx_drop_qp_type: 2, rx_trimmed: 0 });
  });
});
