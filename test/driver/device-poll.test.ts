/** `device.poll()`: programs that spin, over real sockets and rings. Nothing in their loops lets the event loop go round. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import { batchedUdpAvailable } from '../../src/dgram-ext/index.js';
import { type LibC, libC } from '../../src/dgram-ext/libc.js';
import { Access, type CompletionQueue, type DeviceOptions, type QueuePair, type RdmaDevice } from '../../src/index.js';
import { devicesAt } from '../support/devices.js';
import { createPair } from '../support/pair.js';

const missing = batchedUdpAvailable();
const openServer = devicesAt('127.53.9.1');
const openClient = devicesAt('127.53.9.2');
/** Looks after which a loop gives up: far more than a round trip takes. */
const LOOKS_MAX = 200_000;
const BYTES = 4096;

afterEach(() => {
  vi.restoreAllMocks();
});

interface End {
  readonly device: RdmaDevice;
  readonly qp: QueuePair;
  readonly cq: CompletionQueue;
  readonly recvCq: CompletionQueue;
  readonly post: (opcode: 'SEND' | 'RDMA_WRITE' | 'RDMA_READ') => void;
  readonly receive: () => void;
}

/** Two devices of this process, connected. */
async function twoEnds(options: Partial<DeviceOptions>): Promise<[End, End]> {
  const [server, client] = [
    await openServer({ udpPort: 4791, ...options }),
    await openClient({ udpPort: 4791, ...options }),
  ];
  const parts = async (device: RdmaDevice) => {
    const pd = await device.createPd();
    const [cq, recvCq] = [await device.createCq(64), await device.createCq(64)];
    const region = await pd.regMr(2 * BYTES, Access.REMOTE_ALL);
    return { device, cq, recvCq, region, qp: await pd.createQp({ sendCq: cq, recvCq }) };
  };
  const [a, b] = [await parts(server), await parts(client)];
  const end = async (own: typeof a, peer: typeof a): Promise<End> => {
    await own.qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
    await own.qp.modify({
      state: 'RTR',
      av: { address: peer.device.address },
      pathMtu: 4096,
      destQpn: peer.qp.qpn,
      rqPsn: 7,
      maxDestRdAtomic: 1,
      minRnrTimer: 1,
      recovery: 'go-back-n',
    });
    await own.qp.modify({ state: 'RTS', sqPsn: 7, timeout: 18, retryCnt: 7, rnrRetry: 7, maxRdAtomic: 1 });
    const sges = [own.region.sge(0, BYTES)];
    const remote = { remoteAddr: peer.region.addr + BigInt(BYTES), rkey: peer.region.rkey };
    return {
      ...own,
      post: (opcode) => own.qp.postSend(opcode === 'SEND' ? { opcode, sges } : { opcode, sges, ...remote }),
      receive: () => own.qp.postRecv({ sges }),
    };
  };
  return [await end(a, b), await end(b, a)];
}

/** Looks until there is a completion, turning the NICs of these devices in between; undefined: in vain. */
function spin(cq: CompletionQueue, ...devices: RdmaDevice[]) {
  for (let look = 0; look < LOOKS_MAX; look++) {
    const wc = cq.pollOne();
    if (wc !== undefined) return wc;
    for (const device of devices) device.poll();
  }
  return undefined;
}

/** Messages until rings, if there are any, carry them. */
async function warmUp([a, b]: [End, End]): Promise<void> {
  for (let i = 0; i < 20; i++) {
    for (const [from, to] of [
      [a, b],
      [b, a],
    ]) {
      to.receive();
      from.post('SEND');
      expect(await to.recvCq.next()).toMatchObject({ status: 0 });
      expect(await from.cq.next()).toMatchObject({ status: 0 });
    }
  }
}

describe.skipIf(missing !== undefined)('a program that polls its NIC (needs koffi on Linux)', () => {
  for (const io of ['mmsg', 'shm'] as const) {
    it(`over ${io} sees the completions of everything that it posts, and of what it serves, without the event loop`, async () => {
      const ends = await twoEnds({ io });
      await warmUp(ends);
      const [{ device: server, recvCq, receive }, { device, cq, post }] = ends;
      for (let i = 0; i < 50; i++) {
        receive();
        for (const opcode of ['SEND', 'RDMA_WRITE', 'RDMA_READ'] as const) {
          post(opcode);
          expect(spin(cq, device, server)).toMatchObject({ status: 0, opcode });
        }
        expect(recvCq.pollOne()).toMatchObject({ status: 0, opcode: 'RECV' });
      }
      expect(device.counters().local_ack_timeout_err).toBe(0);
    });

    it(`over ${io} waits in vain if neither end is polled (negative control)`, async () => {
      const ends = await twoEnds({ io });
      await warmUp(ends);
      const [, { cq, post }] = ends;
      post('RDMA_WRITE');
      expect(spin(cq)).toBeUndefined();
      expect(await cq.next()).toMatchObject({ status: 0 }); // The event loop brings it.
    });
  }

  it('needs no doorbell in shared memory: no system call between two ends that look', async () => {
    const ends = await twoEnds({ io: 'shm' });
    await warmUp(ends);
    const [{ device: server }, { device, cq, post }] = ends;
    device.poll();
    server.poll();
    const send = vi.spyOn(libC() as LibC, 'sendmmsg');
    for (let i = 0; i < 20; i++) {
      post('RDMA_WRITE');
      expect(spin(cq, device, server)).toMatchObject({ status: 0 });
    }
    expect(send).toHaveBeenCalledTimes(0);
  });

  it('is woken again once it has gone back to the event loop', async () => {
    const ends = await twoEnds({ io: 'shm' });
    await warmUp(ends);
    const [{ device: server }, { device, cq, post }] = ends;
    server.poll(); // It looks, and then never again.
    await new Promise((resolve) => setTimeout(resolve, 5)); // timer: until nobody spins any more
    for (let i = 0; i < 3; i++) {
      post('RDMA_WRITE');
      device.poll();
      expect(await cq.next()).toMatchObject({ status: 0 });
    }
  });

  it('cannot poll a NIC that is closed', async () => {
    const device = await openServer({ io: 'mmsg' });
    expect(device.poll()).toBe(true);
    await device.close();
    expect(device.poll()).toBe(false);
  });
});

describe('a NIC that cannot be polled says so', () => {
  it('where node:dgram reads its socket', async () => {
    const device = await openServer({ io: 'dgram' });
    expect(device.poll()).toBe(false);
  });

  it('in virtual time', async () => {
    const { a } = await createPair();
    expect(a.device.poll()).toBe(false);
  });
});

describe.skipIf(missing !== undefined)('a flush of doorbells', () => {
  it('sends what was posted within the call, and nothing is sent without it', async () => {
    const ends = await twoEnds({ io: 'mmsg' });
    await warmUp(ends);
    const [, { device, cq, post }] = ends;
    device.flushDoorbells();
    const send = vi.spyOn(libC() as LibC, 'sendmmsg');
    post('RDMA_WRITE');
    expect(send).toHaveBeenCalledTimes(0);
    device.flushDoorbells();
    expect(send).toHaveBeenCalledTimes(1);
    expect(await cq.next()).toMatchObject({ status: 0 });
  });

  it('has no effect in virtual time', async () => {
    const { a } = await createPair();
    expect(() => a.device.flushDoorbells()).not.toThrow();
  });
});
