/**
 * DCP: what switches cut is sent again, and nothing else. Beside it the twins: a switch that drops tells nobody, and a control queue with too small a share loses headers; both end in timeouts.
 */

import { describe, expect, it } from 'vitest';
import { VENDOR_TRIM_NAK, VENDOR_TRIMMED } from '../../src/packet/opcode.js';
import { psnAdd } from '../../src/packet/psn.js';
import { emitRoce } from '../../src/packet/roce.js';
import { ack, LoneNic, MTU, pattern, RQ_START, SQ_START } from '../support/lone-nic.js';
import { writeIncast } from '../support/write-incast.js';

const dcp = () => LoneNic.create({ attr: { recovery: 'dcp' } });
const deliver = (nic: LoneNic, opcode: number, psn: number) =>
  nic.deliver(emitRoce({ opcode, psn, destQpn: nic.qp.qpn }));

describe('a receiver', () => {
  it('says nothing of a gap, keeps what is behind it, and returns a header', async () => {
    const nic = await dcp();
    const va = nic.mr.addr;
    for (const at of [2, 1, 3]) nic.request('RDMA_WRITE_ONLY', at, { va, ackReq: true }, pattern(MTU));
    expect(nic.take()).toEqual([]);
    deliver(nic, VENDOR_TRIMMED, RQ_START);
    expect(nic.take()).toMatchObject([{ name: 'TRIM_NAK', at: RQ_START - SQ_START, dscp: 48 }]);
    nic.request('RDMA_WRITE_ONLY', 0, { va }, pattern(MTU));
    expect(nic.take()).toMatchObject([ack(3, 4)]);
    expect(nic.device.counters()).toMatchObject({ reorder_stored: 3, sack_sent: 0, resp_nak_sequence: 0 });
  });
});

describe('a sender', () => {
  it('sends again what came back, as often as it does, and takes no report of order for a loss', async () => {
    const nic = await dcp();
    nic.qp.postSend({ opcode: 'RDMA_WRITE', wrId: 1, sges: [nic.mr.sge(0, 8 * MTU)], remoteAddr: 0n, rkey: 1 });
    const ports = nic.take().map(({ sourcePort }) => sourcePort);
    expect(new Set(ports).size).toBe(8);
    for (const at of [3, 5, 3]) {
      deliver(nic, VENDOR_TRIM_NAK, psnAdd(SQ_START, at));
      expect(nic.take()).toMatchObject([{ at }]);
    }
    nic.ack(1);
    for (const at of [0, 8, 1000]) deliver(nic, VENDOR_TRIM_NAK, psnAdd(SQ_START, at));
    expect(nic.take()).toEqual([]);
    expect(nic.device.counters()).toMatchObject({ tx_retransmitted: 3, local_ack_timeout_err: 0 });
  });

  it('sends everything unacknowledged again when nothing came back for a whole timeout', async () => {
    const nic = await dcp();
    nic.qp.postSend({ opcode: 'RDMA_WRITE', wrId: 1, sges: [nic.mr.sge(0, 4 * MTU)], remoteAddr: 0n, rkey: 1 });
    nic.take();
    nic.ack(0);
    expect(nic.advance(100e6)).toMatchObject([1, 2, 3].map((at) => ({ at })));
    expect(nic.device.counters().local_ack_timeout_err).toBe(1);
  });
});

const RATE_BPS = 40e9;
const MTU_BYTES = 1024;
/** Bytes of a packet and of a header on the link: Ethernet with preamble, check sequence and gap, IPv4, UDP, BTH and ICRC; a RETH now and then. */
const LINK_BYTES = { data: MTU_BYTES + 24 + 14 + 20 + 8 + 12 + 4, header: 24 + 14 + 20 + 8 + 12 + 4 };

function incast(senders: number, more: Partial<Parameters<typeof writeIncast>[0]> = {}) {
  return writeIncast({
    senders,
    bytes: 128 * 1024,
    rateBps: RATE_BPS,
    delayNs: 1000,
    mtu: MTU_BYTES,
    recovery: 'dcp',
    switchConfig: { queuePackets: 32, trim: {} },
    ...more,
  });
}

describe('eight senders into one port with a short queue', () => {
  it('send again exactly what was cut, and end when the port has carried each packet once, and the headers', async () => {
    const { hosts, port, doneNs, isWhole } = await incast(8);
    expect(isWhole).toBe(true);
    expect(port.tx_trimmed).toBeGreaterThan(200);
    expect(hosts).toMatchObject({
      tx_retransmitted: port.tx_trimmed,
      rx_trimmed: port.tx_trimmed,
      trim_nak_received: port.tx_trimmed,
      duplicate_request: 0,
      local_ack_timeout_err: 0,
      resp_nak_sequence: 0,
      sack_sent: 0,
    });
    // The model: no packet twice, so the port has sent all payload once, and a header for each cut. It never idles.
    const packets = (8 * 128 * 1024) / MTU_BYTES;
    const bytes = packets * LINK_BYTES.data + port.tx_trimmed * LINK_BYTES.header;
    const modelNs = (bytes * 8e9) / RATE_BPS;
    expect(Math.max(...doneNs)).toBeGreaterThan(modelNs);
    expect(Math.max(...doneNs)).toBeLessThan(1.02 * modelNs + 10_000);
  });

  it('need timeouts where the switch drops and tells nobody', async () => {
    const cutting = await incast(8);
    const dropping = await incast(8, { switchConfig: { queuePackets: 32 } });
    expect(dropping.isWhole).toBe(true);
    expect(dropping.hosts.local_ack_timeout_err).toBeGreaterThan(8);
    expect(dropping.hosts.duplicate_request).toBeGreaterThan(0);
    expect(Math.max(...dropping.doneNs)).toBeGreaterThan(5 * Math.max(...cutting.doneNs));
  });

  it('need one where a header is lost on its way back', async () => {
    const { hosts, isWhole, port } = await incast(8, { faults: 'h8>h0:opcode=TRIM_NAK:once' });
    expect(isWhole).toBe(true);
    expect(hosts.local_ack_timeout_err).toBe(1);
    expect(hosts.rx_trimmed).toBe(port.tx_trimmed);
    expect(hosts.tx_retransmitted).toBeGreaterThan(port.tx_trimmed);
  });
});

describe('a READ', () => {
  it('asks again for the part whose answer came back cut, as often as it does', async () => {
    const nic = await dcp();
    nic.qp.postSend({ opcode: 'RDMA_READ', wrId: 1, sges: [nic.mr.sge(0, 8 * MTU)], remoteAddr: 0n, rkey: 1 });
    expect(nic.take()).toMatchObject([{ name: 'RDMA_READ_REQUEST', at: 0, dmaLength: 8 * MTU }]);
    for (const at of [3, 3, 7]) {
      deliver(nic, VENDOR_TRIM_NAK, psnAdd(SQ_START, at));
      expect(nic.take()).toMatchObject([{ name: 'RDMA_READ_REQUEST', at, dmaLength: MTU }]);
    }
    deliver(nic, VENDOR_TRIM_NAK, psnAdd(SQ_START, 8));
    expect(nic.take()).toEqual([]);
    expect(nic.device.counters()).toMatchObject({ trim_nak_received: 3, local_ack_timeout_err: 0 });
  });

  it('of four hosts at once sends again exactly what was cut, and no timer runs out', async () => {
    const { hosts, port, doneNs, isWhole } = await incast(4, { op: 'read' });
    expect(isWhole).toBe(true);
    expect(port.tx_trimmed).toBeGreaterThan(200);
    expect(hosts).toMatchObject({
      trim_nak_received: port.tx_trimmed,
      trim_nak_sent: 0,
      rx_trimmed: 0,
      stale_response: 0,
      local_ack_timeout_err: 0,
    });
    const packets = (4 * 128 * 1024) / MTU_BYTES;
    const bytes = packets * LINK_BYTES.data + port.tx_trimmed * LINK_BYTES.header;
    expect(Math.max(...doneNs)).toBeLessThan(1.05 * ((bytes * 8e9) / RATE_BPS) + 20_000);
  });

  it('needs timeouts where the switch drops and tells nobody', async () => {
    const { hosts, isWhole } = await incast(4, { op: 'read', switchConfig: { queuePackets: 32 } });
    expect(isWhole).toBe(true);
    expect(hosts.local_ack_timeout_err).toBeGreaterThan(3);
  });
});

describe('a control queue served in turn with data', () => {
  /** w >= (N - 1) / (r - N) */
  const r = LINK_BYTES.data / LINK_BYTES.header;
  const weightNeeded = (senders: number) => (senders - 1) / (r - senders);
  const weighted = (senders: number, control: number, data: number) =>
    incast(senders, {
      switchConfig: {
        queuePackets: 8,
        trim: {},
        scheduling: { strict: [7], weights: [data, 1, 1, 1, 1, 1, control, 1] },
      },
    });

  it.each([
    [4, 1, 2],
    [8, 2, 1],
  ])('loses no header of %i senders with the weight %i to %i, which is enough', async (senders, control, data) => {
    expect(control / data).toBeGreaterThan(1.1 * weightNeeded(senders));
    const { hosts, port, isWhole } = await weighted(senders, control, data);
    expect(isWhole).toBe(true);
    expect(port.tx_dropped_queue_full).toBe(0);
    expect(hosts).toMatchObject({ local_ack_timeout_err: 0, tx_retransmitted: port.tx_trimmed });
  });

  it.each([
    [4, 1, 8],
    [8, 1, 2],
  ])('loses headers of %i senders with the weight %i to %i, which is not', async (senders, control, data) => {
    expect(control / data).toBeLessThan(0.9 * weightNeeded(senders));
    const { hosts, port } = await weighted(senders, control, data);
    expect(port.tx_dropped_queue_full).toBeGreaterThan(0);
    expect(hosts.local_ack_timeout_err).toBeGreaterThan(0);
  });
});
