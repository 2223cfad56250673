/** Regions that change while they are registered (`ibv_rereg_mr`). */

import { describe, expect, it } from 'vitest';
import { Access } from '../../src/verbs/access.js';
import type { ReregisterOptions } from '../../src/verbs/memory-region.js';
import { ack, LoneNic, MTU, nak, pattern } from '../support/lone-nic.js';

const RIGHTS = Access.REMOTE_ALL;
const word = pattern(8);
const coded = (code: string) => expect.objectContaining({ code });

async function withRegion() {
  const nic = await LoneNic.create();
  const region = await nic.pd.regMr(4 * MTU, RIGHTS);
  const { lkey, rkey, handle } = region;
  let at = 0;
  /** What the NIC answers to a WRITE of these bytes to the region's first one. */
  const write = (bytes = word, va = region.addr) => {
    nic.request('RDMA_WRITE_ONLY', at++, { va, rkey, ackReq: true }, bytes);
    return nic.take();
  };
  return { nic, region, keys: { lkey, rkey, handle }, write };
}

describe('reregister', () => {
  it('gives the region other memory at a new address, and keeps its keys', async () => {
    const { nic, region, keys, write } = await withRegion();
    const before = region.addr;
    const old = region.bytes;
    await region.reregister({ memory: 64 });
    expect(region).toMatchObject({ ...keys, access: RIGHTS, length: 64 });
    expect(region.addr).not.toBe(before);
    expect(write()).toMatchObject([ack(0, 1)]);
    expect(region.bytes.subarray(0, 8)).toEqual(word);
    expect(old.every((byte) => byte === 0)).toBe(true);
    nic.qp.postSend({ opcode: 'SEND', sges: [region.sge(0, 8)] });
    expect(nic.take()).toMatchObject([{ name: 'SEND_ONLY', payload: word }]);
    expect(write(word, before)).toMatchObject([nak(0x62, 1)]);
  });

  it('takes rights away, and gives others', async () => {
    const { region, write } = await withRegion();
    await region.reregister({ access: Access.LOCAL_WRITE | Access.REMOTE_WRITE });
    expect(write()).toMatchObject([ack(0, 1)]);
    await region.reregister({ access: Access.LOCAL_WRITE | Access.REMOTE_READ });
    expect(region.access).toBe(Access.LOCAL_WRITE | Access.REMOTE_READ);
    expect(write()).toMatchObject([nak(0x62, 1)]);
    expect(region.bytes.subarray(0, 8)).toEqual(word);
  });

  it('changes the address alone', async () => {
    const { region, write } = await withRegion();
    await region.reregister({ iova: 0x7000n });
    expect(region.addr).toBe(0x7000n);
    expect(write()).toMatchObject([ack(0, 1)]);
  });

  it('moves the region to another protection domain, which closes it', async () => {
    const { nic, region, write } = await withRegion();
    const pd = await nic.device.createPd();
    await region.reregister({ pd });
    expect(region.pd).toBe(pd);
    expect(write()).toMatchObject([nak(0x62, 0)]);
    await pd.close();
    expect(region.isClosed).toBe(true);
  });

  it('ends requests in progress', async () => {
    const { nic, region } = await withRegion();
    const { rkey, addr } = region;
    nic.request('RDMA_WRITE_FIRST', 0, { va: addr, rkey, dmaLength: 2 * MTU }, pattern(MTU));
    await region.reregister({ access: RIGHTS | Access.MW_BIND });
    nic.request('RDMA_WRITE_LAST', 1, { ackReq: true }, pattern(MTU));
    expect(nic.take()).toMatchObject([nak(0x62, 1)]);
  });

  it.each([
    ['ERR_ROCE_OUT_OF_RANGE', { access: 64 }],
    ['ERR_ROCE_OUT_OF_RANGE', { access: Number.NaN }],
    ['ERR_ROCE_CONFLICT', { access: Access.REMOTE_WRITE }],
    ['ERR_ROCE_UNSUPPORTED', { access: Access.FLUSH_PERSISTENT }],
    ['ERR_ROCE_OUT_OF_RANGE', { memory: -1 }],
    ['ERR_ROCE_INVALID_ARGUMENT', { memory: 'buffer' }],
    ['ERR_ROCE_INVALID_ARGUMENT', { iova: 5 }],
    ['ERR_ROCE_OUT_OF_RANGE', { iova: -1n }],
    ['ERR_ROCE_OUT_OF_RANGE', { iova: (1n << 64n) - 1n }],
    ['ERR_ROCE_UNKNOWN_NAME', { rkey: 1 }],
    ['ERR_ROCE_INVALID_ARGUMENT', { pd: 1 }],
    ['ERR_ROCE_INVALID_ARGUMENT', undefined],
  ])('%s: refuses %o, and nothing has changed', async (code, changes) => {
    const { region, keys, write } = await withRegion();
    const { addr, bytes } = region;
    await expect(region.reregister(changes as ReregisterOptions)).rejects.toEqual(coded(code));
    expect(region).toMatchObject({ ...keys, addr, access: RIGHTS });
    expect(region.bytes).toBe(bytes);
    expect(write()).toMatchObject([ack(0, 1)]);
  });

  it('refuses a domain of another device, and bound windows', async () => {
    const { nic, region } = await withRegion();
    const other = await LoneNic.create();
    await expect(region.reregister({ pd: other.pd })).rejects.toEqual(coded('ERR_ROCE_CONFLICT'));
    await region.reregister({ access: RIGHTS | Access.MW_BIND });
    const mw = await nic.pd.allocMw(2);
    const place = { offset: 0, length: 8, access: Access.REMOTE_WRITE };
    nic.qp.postSend({ opcode: 'BIND_MW', mw, rkey: mw.nextRkey(), mr: region, ...place });
    expect(nic.done()).toMatchObject([{ status: 0 }]);
    await expect(region.reregister({ access: 0 })).rejects.toEqual(coded('ERR_ROCE_BUSY'));
    await mw.close();
    await region.reregister({ access: 0 });
  });

  it('one after another, and closed meanwhile', async () => {
    const { region } = await withRegion();
    const changes = [region.reregister({ memory: 8 }), region.reregister({ memory: 16 }), region.close()];
    await Promise.all(changes);
    expect(region.length).toBe(16);
    await expect(region.reregister({ memory: 8 })).rejects.toEqual(coded('ERR_ROCE_NOT_FOUND'));
  });
});
