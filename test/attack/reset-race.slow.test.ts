/**
 * A queue pair leaves its connection, by RESET or for ever, while the program goes on posting: nothing of it may reach the next peer, and no
 * receive may complete twice. With a NIC in a worker the command is under way for some time; with one on this thread, until the next
 * interrupt.
 */

import { afterEach, describe, expect, it } from 'vitest';
import type { IpAddress, QueuePair, RdmaDevice } from '../../src/index.js';
import { builtApi, isBuilt } from '../support/built-api.js';

const POOLED = '127.0.2.11';
const FIRST_PEER = '127.0.2.12';
const NEXT_PEER = '127.0.2.13';

const devices: RdmaDevice[] = [];
afterEach(async () => {
  await Promise.all(devices.splice(0).map((device) => device.close()));
});

/** A device with one queue pair, its receives and completions. */
async function endpoint(address: string, engine: 'inline' | 'worker') {
  const { Access, openDevice } = await builtApi();
  const device = await openDevice({ address, udpPort: 0, engine });
  devices.push(device);
  const pd = await device.createPd();
  const cq = await device.createCq(64);
  const recvCq = await device.createCq(64);
  const mr = await pd.regMr(4096, Access.REMOTE_ALL);
  const qp = await pd.createQp({ sendCq: cq, recvCq, maxSendWr: 8, maxRecvWr: 8 });
  return { device, pd, cq, recvCq, mr, qp };
}
type Endpoint = Awaited<ReturnType<typeof endpoint>>;

async function connectTo(qp: QueuePair, address: IpAddress, udpPort: number, destQpn: number): Promise<void> {
  await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: 0 });
  const av = { address, udpPort };
  await qp.modify({ state: 'RTR', av, pathMtu: 1024, destQpn, rqPsn: 0, maxDestRdAtomic: 1, minRnrTimer: 12 });
  await qp.modify({ state: 'RTS', sqPsn: 0, timeout: 14, retryCnt: 7, rnrRetry: 7, maxRdAtomic: 1 });
}

async function connectBoth(a: Endpoint, b: Endpoint): Promise<void> {
  const of = ({ device }: Endpoint) => [device.address, device.attributes.udpPort] as const;
  await connectTo(a.qp, ...of(b), b.qp.qpn);
  await connectTo(b.qp, ...of(a), a.qp.qpn);
}

/** Posts one message; the code of the error that refuses it, or undefined. */
function codeOf(post: () => void): string | undefined {
  try {
    post();
    return undefined;
  } catch (error) {
    return (error as { code: string }).code;
  }
}
const message = (text: string) => ({ opcode: 'SEND', inline: Buffer.from(text) }) as const;

describe.runIf(isBuilt).each(['inline', 'worker'] as const)('while RESET is under way (%s engine)', (engine) => {
  it('posting is refused: the next peer gets its own message first, each receive completes once', async () => {
    const pooled = await endpoint(POOLED, engine);
    const first = await endpoint(FIRST_PEER, 'inline');
    const next = await endpoint(NEXT_PEER, 'inline');
    await connectBoth(pooled, first);
    first.qp.postRecv({ sges: [first.mr.sge()] });
    pooled.qp.postSend(message('for the first'));
    expect(await first.recvCq.next()).toMatchObject({ status: 0, byteLen: 13 });

    const reset = pooled.qp.modify({ state: 'RESET' });
    expect(codeOf(() => pooled.qp.postSend(message('a secret of the first')))).toBe('ERR_ROCE_INVALID_STATE');
    expect(codeOf(() => pooled.qp.postRecv({ wrId: 99 }))).toBe('ERR_ROCE_INVALID_STATE');
    await reset;

    await connectBoth(pooled, next);
    next.qp.postRecv({ wrId: 1, sges: [next.mr.sge()] });
    pooled.qp.postSend(message('hello'));
    expect(await next.recvCq.next()).toMatchObject({ wrId: 1, status: 0, byteLen: 5 });
    expect(next.mr.bytes.subarray(0, 5).toString()).toBe('hello');

    for (let wrId = 1; wrId <= 8; wrId++) pooled.qp.postRecv({ wrId, sges: [pooled.mr.sge()] });
    for (let n = 0; n < 8; n++) next.qp.postSend(message(`${n}`));
    const received: unknown[] = [];
    while (received.length < 8) received.push((await pooled.recvCq.next()).wrId);
    expect(received).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it('a refused RESET leaves the connection as it was', async () => {
    const pooled = await endpoint(POOLED, engine);
    const peer = await endpoint(FIRST_PEER, 'inline');
    await connectBoth(pooled, peer);
    await expect(pooled.qp.modify({ state: 'RESET', timeout: 1 })).rejects.toMatchObject({ code: 'ERR_ROCE_CONFLICT' });
    peer.qp.postRecv({ wrId: 5, sges: [peer.mr.sge()] });
    pooled.qp.postSend(message('still here'));
    expect(await peer.recvCq.next()).toMatchObject({ wrId: 5, status: 0 });
  });

  it('posting is refused from the call of close() on', async () => {
    const pooled = await endpoint(POOLED, engine);
    const peer = await endpoint(FIRST_PEER, 'inline');
    await connectBoth(pooled, peer);
    peer.qp.postRecv({ wrId: 5, sges: [peer.mr.sge()] });
    const closing = pooled.qp.close();
    expect(codeOf(() => pooled.qp.postSend(message('too late')))).toBe('ERR_ROCE_CLOSED');
    expect(codeOf(() => pooled.qp.postRecv())).toBe('ERR_ROCE_CLOSED');
    await closing;
    expect(peer.recvCq.poll()).toEqual([]);
  });
});
