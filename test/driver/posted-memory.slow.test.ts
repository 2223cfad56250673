/**
 * Programs whose threads change memory while the NIC sends it. Data of requests leave without a copy where the verbs contract forbids that; what breaks it loses packets and
 * nothing else. What peers READ, and what they may write, is copied first, and loses none.
 */

import { setImmediate as round } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { equalBytes } from '../../src/core/bytes.js';
import { batchedUdpAvailable } from '../../src/dgram-ext/index.js';
import { SendVector } from '../../src/dgram-ext/send-vector.js';
import { Access, checkCompletion, type DeviceOptions, type RdmaDevice } from '../../src/index.js';
import { builtApi, isBuilt } from '../support/built-api.js';
import { devicesAt } from '../support/devices.js';

const PACKET_BYTES = 4096;
const PACKETS = 64;
const BYTES = PACKETS * PACKET_BYTES;

async function endOf(device: RdmaDevice, access: number, type: 'RC' | 'UC' = 'RC') {
  const pd = await device.createPd();
  const [cq, recvCq] = [await device.createCq(16), await device.createCq(16)];
  const qp = await pd.createQp({ type, sendCq: cq, recvCq });
  const region = await pd.regMr(new Uint8Array(new SharedArrayBuffer(BYTES)), access);
  return { device, pd, cq, recvCq, qp, region, type };
}

type End = Awaited<ReturnType<typeof endOf>>;

async function join({ qp, type }: End, peer: End): Promise<void> {
  const { address, udpPort } = peer.device.attributes;
  const isReliable = type === 'RC';
  const av = { address, udpPort };
  await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
  await qp.modify({
    state: 'RTR',
    av,
    pathMtu: PACKET_BYTES,
    destQpn: peer.qp.qpn,
    rqPsn: 0,
    ...(isReliable && { maxDestRdAtomic: 16, minRnrTimer: 12 }),
  });
  await qp.modify({
    state: 'RTS',
    sqPsn: 0,
    ...(isReliable && { timeout: 14, retryCnt: 7, rnrRetry: 7, maxRdAtomic: 16 }),
  });
}

function post({ qp, region }: End, far: End, opcode: 'RDMA_WRITE' | 'RDMA_READ'): void {
  const { addr: remoteAddr, rkey } = far.region;
  qp.postSend({ opcode, sges: [region.sge()], remoteAddr, rkey });
}

const icrcErrors = (...ends: End[]) => ends.reduce((sum, { device }) => sum + device.counters().rx_icrc_errors, 0);

/** Every word says where it stands, and in its low byte when it was written. */
function write(words: Uint32Array, when: number): void {
  for (let i = 0; i < words.length; i++) words[i] = (i << 8) | (when & 0xff);
}

const wordsOf = ({ region: { bytes } }: End) => new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
const strangers = (end: End) => wordsOf(end).filter((word, i) => word >>> 8 !== i).length;

describe.skipIf(batchedUdpAvailable() !== undefined)('memory that changes between sum and system call', () => {
  const openNear = devicesAt('127.53.1.5');
  const openFar = devicesAt('127.53.1.6');

  afterEach(() => vi.restoreAllMocks());

  async function pair(nearAccess: number, farAccess: number = Access.REMOTE_ALL, type: 'RC' | 'UC' = 'RC') {
    const near = await endOf(await openNear({ io: 'mmsg' }), nearAccess, type);
    const far = await endOf(await openFar({ io: 'mmsg' }), farAccess, type);
    await join(near, far);
    await join(far, near);
    return { near, far };
  }

  /** What another thread could do: `change` runs behind the sums of a batch and before the kernel takes it. */
  function betweenSumAndSending(change: () => void): void {
    const { prepare } = SendVector.prototype;
    vi.spyOn(SendVector.prototype, 'prepare').mockImplementation(function (this: SendVector) {
      change();
      prepare.call(this);
    });
  }

  it('loses a packet of a WRITE that is changed once, and sends it again', async () => {
    const { near, far } = await pair(Access.LOCAL_WRITE);
    const words = wordsOf(near);
    write(words, 1);
    let isChanged = false;
    betweenSumAndSending(() => {
      if (!isChanged) words[5] ^= 1;
      isChanged = true;
    });
    post(near, far, 'RDMA_WRITE');
    checkCompletion(await near.cq.next());
    expect(icrcErrors(far)).toBe(1);
    expect(near.device.counters().tx_retransmitted).toBeGreaterThan(0);
    expect(equalBytes(far.region.bytes, near.region.bytes)).toBe(true);
  });

  it('completes a WRITE that is changed all the time, since what is sent again is a copy, and goes on when that ends', async () => {
    const { near, far } = await pair(Access.LOCAL_WRITE);
    let rounds = 0;
    let changes = true;
    betweenSumAndSending(() => {
      if (changes) write(wordsOf(near), ++rounds);
    });
    write(wordsOf(near), 0);
    for (let message = 0; message < 3; message++) {
      post(near, far, 'RDMA_WRITE');
      checkCompletion(await near.cq.next());
      expect(strangers(far)).toBe(0);
    }
    const errors = icrcErrors(far);
    expect(errors).toBeGreaterThanOrEqual(3);
    changes = false;
    post(near, far, 'RDMA_WRITE');
    checkCompletion(await near.cq.next());
    expect(equalBytes(far.region.bytes, near.region.bytes)).toBe(true);
    expect(icrcErrors(far)).toBe(errors);
  });

  it.each<[string, number]>([
    ['REMOTE_WRITE', Access.LOCAL_WRITE | Access.REMOTE_WRITE],
    ['REMOTE_ATOMIC', Access.LOCAL_WRITE | Access.REMOTE_ATOMIC],
    ['MW_BIND, which windows can open for writing', Access.LOCAL_WRITE | Access.MW_BIND],
  ])('loses nothing of a region with %s', async (_, access) => {
    const { near, far } = await pair(access);
    let rounds = 0;
    betweenSumAndSending(() => write(wordsOf(near), ++rounds));
    write(wordsOf(near), 0);
    post(near, far, 'RDMA_WRITE');
    checkCompletion(await near.cq.next());
    expect(strangers(far)).toBe(0);
    expect(icrcErrors(far)).toBe(0);
  });

  it('loses nothing of what a peer READs, whose owner may change it at any time', async () => {
    const { near, far } = await pair(Access.LOCAL_WRITE, Access.REMOTE_READ);
    let rounds = 0;
    betweenSumAndSending(() => write(wordsOf(far), ++rounds));
    write(wordsOf(far), 0);
    post(near, far, 'RDMA_READ');
    checkCompletion(await near.cq.next());
    expect(strangers(near)).toBe(0);
    expect(icrcErrors(near, far)).toBe(0);
  });

  it('loses nothing by UC, whose requests complete before their packets have left', async () => {
    const { near, far } = await pair(Access.LOCAL_WRITE, Access.LOCAL_WRITE, 'UC');
    let rounds = 0;
    betweenSumAndSending(() => write(wordsOf(near), ++rounds));
    write(wordsOf(near), 0);
    far.qp.postRecv({ sges: [far.region.sge()] });
    near.qp.postSend({ opcode: 'SEND', sges: [near.region.sge()] });
    checkCompletion(await far.recvCq.next());
    expect(strangers(far)).toBe(0);
    expect(icrcErrors(far)).toBe(0);
  });
});

describe.runIf(isBuilt && batchedUdpAvailable() === undefined)(
  'memory that the program changes beside a worker',
  () => {
    const open = async (options: DeviceOptions) => (await builtApi()).openDevice(options);
    const openNear = devicesAt('127.53.1.7', open);
    const openFar = devicesAt('127.53.1.8', open);
    const MESSAGES = 10;

    async function pair(io: 'mmsg' | 'shm', farAccess: number) {
      const near = await endOf(await openNear({ io, engine: 'worker' }), Access.LOCAL_WRITE);
      const far = await endOf(await openFar({ io, engine: 'worker' }), farAccess);
      await join(near, far);
      await join(far, near);
      return { near, far };
    }

    /** Changes `changed` until the request completes. */
    async function transfer(near: End, far: End, opcode: 'RDMA_WRITE' | 'RDMA_READ', changed: End): Promise<void> {
      const words = wordsOf(changed);
      post(near, far, opcode);
      for (let when = 1; ; when++) {
        write(words, when);
        const wc = near.cq.pollOne();
        if (wc !== undefined) return void checkCompletion(wc);
        await round();
      }
    }

    it.each(['mmsg', 'shm'] as const)('never arrives wrong, and every WRITE completes: %s', async (io) => {
      const { near, far } = await pair(io, Access.REMOTE_ALL);
      write(wordsOf(near), 0);
      for (let message = 0; message < MESSAGES; message++) {
        await transfer(near, far, 'RDMA_WRITE', near);
        expect(strangers(far)).toBe(0);
      }
      const errors = icrcErrors(far); // As many as the threads happened to meet.
      post(near, far, 'RDMA_WRITE');
      checkCompletion(await near.cq.next());
      expect(equalBytes(far.region.bytes, near.region.bytes)).toBe(true);
      expect(icrcErrors(far)).toBe(errors);
    });

    it.each(['mmsg', 'shm'] as const)('is copied before its sum where a peer READs it: %s', async (io) => {
      const { near, far } = await pair(io, Access.REMOTE_READ);
      write(wordsOf(far), 0);
      for (let message = 0; message < MESSAGES; message++) {
        await transfer(near, far, 'RDMA_READ', far);
        expect(strangers(near)).toBe(0);
      }
      expect(icrcErrors(near, far)).toBe(0);
    });
  },
);
