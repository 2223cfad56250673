/** Who owns whom, in which order things close, and what refuses to. */

import { describe, expect, it } from 'vitest';
import { Access } from '../../src/verbs/access.js';
import { type DeviceOptions, openDevice } from '../../src/verbs/open-device.js';
import { LoneNic } from '../support/lone-nic.js';

const busy = { code: 'ERR_ROCE_BUSY' };

describe('closing the device', () => {
  it('closes everything made from it, whatever the order of making', async () => {
    const nic = await LoneNic.create({ state: 'RESET' });
    const { device } = nic;
    const mw = await nic.pd.allocMw(1);
    const lateRegion = await nic.pd.regMr(4096, Access.REMOTE_ALL | Access.MW_BIND);
    const srq = await nic.pd.createSrq({ depth: 4 });
    const lateCq = await device.createCq(4);
    const qp = await nic.pd.createQp({ sendCq: lateCq, srq });
    await device.close();
    for (const object of [nic.pd, nic.cq, nic.qp, nic.mr, mw, lateRegion, srq, lateCq, qp, device]) {
      expect(object.isClosed).toBe(true);
    }
    expect(nic.host.nic.keys.size).toBe(0);
  });

  it('closes a window that is bound before its region', async () => {
    const nic = await LoneNic.create();
    const mw = await nic.pd.allocMw(1); // Made after the region here, before it below.
    const lateRegion = await nic.pd.regMr(4096, Access.REMOTE_ALL | Access.MW_BIND);
    nic.qp.postSend({ opcode: 'BIND_MW', mw, rkey: mw.nextRkey(), mr: lateRegion, offset: 0, length: 8, access: 0 });
    expect(nic.done()).toMatchObject([{ status: 0 }]);
    await nic.device.close();
    expect(nic.host.nic.keys.size).toBe(0);
  });

  it('may be done twice, also at once', async () => {
    const nic = await LoneNic.create();
    await Promise.all([nic.device.close(), nic.device.close()]);
    await nic.device.close();
  });

  it('ends new work', async () => {
    const nic = await LoneNic.create();
    await nic.device.close();
    await expect(nic.device.createPd()).rejects.toMatchObject({ code: 'ERR_ROCE_CLOSED' });
  });

  it('is what `await using` does', async () => {
    const nic = await LoneNic.create();
    await nic.device[Symbol.asyncDispose]();
    expect(nic.qp.isClosed).toBe(true);
  });
});

describe('a closed queue pair', () => {
  it.each(['close', 'reset'])('takes its type 2 windows with it (%s)', async (how) => {
    const nic = await LoneNic.create();
    const region = await nic.pd.regMr(4096, Access.REMOTE_ALL | Access.MW_BIND);
    const mw = await nic.pd.allocMw(2);
    const access = Access.REMOTE_WRITE;
    nic.qp.postSend({ opcode: 'BIND_MW', mw, rkey: mw.nextRkey(), mr: region, offset: 0, length: 8, access });
    expect(nic.done()).toMatchObject([{ status: 0 }]);
    await expect(region.close()).rejects.toMatchObject(busy);
    await (how === 'close' ? nic.qp.close() : nic.qp.modify({ state: 'RESET' }));
    await region.close();
  });

  it('takes no work, and says why', async () => {
    const nic = await LoneNic.create();
    await nic.qp.close();
    const closed = expect.objectContaining({ code: 'ERR_ROCE_CLOSED' });
    expect(() => nic.qp.postSend({ opcode: 'SEND' })).toThrow(closed);
    expect(() => nic.qp.postRecv()).toThrow(closed);
    await expect(nic.qp.modify({ state: 'ERR' })).rejects.toMatchObject({ code: 'ERR_ROCE_CLOSED' });
    await expect(nic.qp.query()).rejects.toMatchObject({ code: 'ERR_ROCE_CLOSED' });
  });

  it('flushes nothing, and leaves nothing on the wire', async () => {
    const nic = await LoneNic.create();
    nic.qp.postRecv();
    nic.qp.postSend({ opcode: 'SEND', wrId: 1 }, { opcode: 'SEND', wrId: 2 });
    await nic.qp.close();
    expect(nic.advance(10e9)).toEqual([]);
    expect(nic.done()).toEqual([]);
    nic.request('SEND_ONLY', 0);
    expect(nic.take()).toEqual([]);
    expect(nic.device.counters().rx_drop_no_qp).toBe(1);
  });
});

describe('an object in use', () => {
  it('a completion queue with queue pairs is busy, and can be closed after them', async () => {
    const nic = await LoneNic.create();
    await expect(nic.cq.close()).rejects.toMatchObject(busy);
    expect(nic.cq.isClosed).toBe(false);
    nic.qp.postSend({ opcode: 'SEND' });
    nic.take();
    nic.ack(0);
    expect(nic.done()).toHaveLength(1); // It works on.
    await nic.qp.close();
    await nic.cq.close();
    expect(nic.cq.isClosed).toBe(true);
  });

  it('a shared receive queue with queue pairs is busy', async () => {
    const nic = await LoneNic.create();
    const srq = await nic.pd.createSrq({ depth: 4 });
    const qp = await nic.pd.createQp({ sendCq: nic.cq, srq });
    await expect(srq.close()).rejects.toMatchObject(busy);
    await qp.close();
    await srq.close();
  });

  it('a region with a bound window is busy', async () => {
    const nic = await LoneNic.create();
    const mw = await nic.pd.allocMw(2);
    nic.qp.postSend({ opcode: 'BIND_MW', mw, rkey: mw.nextRkey(), mr: nic.mr, offset: 0, length: 8, access: 0 });
    nic.done();
    await expect(nic.mr.close()).rejects.toMatchObject(busy);
    nic.qp.postSend({ opcode: 'LOCAL_INV', invalidateRkey: mw.rkey });
    expect(nic.done()).toMatchObject([{ status: 0, opcode: 'LOCAL_INV' }]);
    await nic.mr.close();
  });

  it('QP1 exists once', async () => {
    const nic = await LoneNic.create();
    const gsi = await nic.pd.createQp({ type: 'GSI', sendCq: nic.cq });
    expect(gsi.qpn).toBe(1);
    await expect(nic.pd.createQp({ type: 'GSI', sendCq: nic.cq })).rejects.toMatchObject(busy);
    await gsi.close();
    expect((await nic.pd.createQp({ type: 'GSI', sendCq: nic.cq })).qpn).toBe(1);
  });
});

describe('closing a protection domain', () => {
  it('closes what was made from it and leaves others alone', async () => {
    const nic = await LoneNic.create();
    const other = await nic.device.createPd();
    const region = await other.regMr(64, Access.LOCAL_WRITE);
    await nic.pd.close();
    expect([nic.qp.isClosed, nic.mr.isClosed, region.isClosed, nic.cq.isClosed]).toEqual([true, true, false, false]);
  });
});

describe('belonging together', () => {
  it('an SRQ of another domain is refused', async () => {
    const nic = await LoneNic.create();
    const srq = await (await nic.device.createPd()).createSrq({ depth: 4 });
    await expect(nic.pd.createQp({ sendCq: nic.cq, srq })).rejects.toMatchObject({ code: 'ERR_ROCE_CONFLICT' });
  });

  it('a closed QP hears nothing, and its number is not given out again soon', async () => {
    const nic = await LoneNic.create();
    const { qpn } = nic.qp;
    await nic.qp.close();
    nic.request('RDMA_WRITE_ONLY', 0, { ackReq: true }, Buffer.alloc(8));
    expect(nic.take()).toEqual([]);
    expect(nic.device.counters().rx_drop_no_qp).toBe(1);
    for (let n = 0; n < 200; n++) {
      const qp = await nic.pd.createQp({ sendCq: nic.cq });
      expect(qp.qpn).not.toBe(qpn);
      await qp.close();
    }
  });

  it('timers of a closed QP do nothing', async () => {
    const nic = await LoneNic.create();
    nic.qp.postSend({ opcode: 'SEND' });
    nic.take();
    await nic.qp.close();
    expect(nic.advance(1e12)).toEqual([]);
  });
});

describe('memory', () => {
  it('given by the caller is used in place', async () => {
    const nic = await LoneNic.create();
    const backing = new ArrayBuffer(256);
    const region = await nic.pd.regMr(new Uint8Array(backing, 64, 100), Access.REMOTE_ALL);
    nic.request('RDMA_WRITE_ONLY', 0, { va: region.addr, rkey: region.rkey }, Buffer.from('here'));
    expect(Buffer.from(backing, 64, 4).toString()).toBe('here');
  });

  it('regions of one device do not overlap by default, with a gap between', async () => {
    const nic = await LoneNic.create();
    const regions = await Promise.all([1, 4096, 4097, 10].map((size) => nic.pd.regMr(size, 0)));
    const sorted = regions.sort((a, b) => (a.addr < b.addr ? -1 : 1));
    for (let k = 1; k < sorted.length; k++) {
      expect(sorted[k].addr - (sorted[k - 1].addr + BigInt(sorted[k - 1].length))).toBeGreaterThanOrEqual(4096n);
    }
  });

  it('an address that reaches beyond 64 bits is refused', async () => {
    const nic = await LoneNic.create();
    const refused = { code: 'ERR_ROCE_OUT_OF_RANGE' };
    await expect(nic.pd.regMr(16, 0, { iova: 2n ** 64n - 8n })).rejects.toMatchObject(refused);
    await expect(nic.pd.regMr(16, 0, { iova: -1n })).rejects.toMatchObject(refused);
    const last = await nic.pd.regMr(16, Access.REMOTE_ALL, { iova: 2n ** 64n - 16n });
    nic.request('RDMA_WRITE_ONLY', 0, { va: last.addr + 8n, rkey: last.rkey, ackReq: true }, Buffer.alloc(8, 1));
    expect(nic.take()).toMatchObject([{ syndrome: 0x1f }]);
    expect(last.bytes.subarray(8)).toEqual(Buffer.alloc(8, 1));
  });

  it('flags that contradict each other leave nothing behind', async () => {
    const nic = await LoneNic.create();
    const before = nic.host.nic.keys.size;
    await expect(nic.pd.regMr(16, Access.REMOTE_WRITE)).rejects.toMatchObject({ code: 'ERR_ROCE_CONFLICT' });
    expect(nic.host.nic.keys.size).toBe(before);
  });

  it('scatter/gather elements stay inside their region', async () => {
    const nic = await LoneNic.create();
    for (const [offset, length] of [
      [-1, 1],
      [0, 65537],
      [65536, 1],
      [1.5, 1],
      [0, -1],
    ]) {
      expect(() => nic.mr.sge(offset, length)).toThrow(expect.objectContaining({ code: 'ERR_ROCE_OUT_OF_RANGE' }));
    }
    expect(nic.mr.sge(65536)).toMatchObject({ length: 0 });
  });
});

describe('the command ring', () => {
  it('takes more commands at once than it is deep, and answers each', async () => {
    const nic = await LoneNic.create();
    const pds = await Promise.all(Array.from({ length: 500 }, () => nic.device.createPd()));
    expect(new Set(pds.map((pd) => pd.handle)).size).toBe(500);
    const results = await Promise.allSettled(
      Array.from({ length: 300 }, (_, n) =>
        n % 3 === 0 ? nic.pd.regMr(16, Access.REMOTE_WRITE) : nic.pd.regMr(16, 0),
      ),
    );
    expect(results.map((result) => result.status === 'rejected')).toEqual(results.map((_, n) => n % 3 === 0));
  });

  it('gives the words of a refusal', async () => {
    const nic = await LoneNic.create();
    await expect(nic.qp.modify({ state: 'INIT' })).rejects.toThrow(/cannot go from RTS to INIT/);
  });
});

describe('openDevice', () => {
  it.each([
    ['no address', {}, 'INVALID_ARGUMENT'],
    ['an address that is none', { address: 'nonsense' }, 'MALFORMED'],
    ['an engine that does not exist', { address: '127.62.0.1', engine: 'gpu' }, 'UNKNOWN_NAME'],
    ['I/O that does not exist', { address: '127.62.0.1', io: 'xdp' }, 'UNKNOWN_NAME'],
    ['options that exclude each other', { address: '127.62.0.1', io: 'mmsg', native: 'off' }, 'CONFLICT'],
  ])('refuses %s', async (_, options, code) => {
    await expect(openDevice(options as DeviceOptions)).rejects.toMatchObject({ code: `ERR_ROCE_${code}` });
  });
});
