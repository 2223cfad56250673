/** How often a NIC in a thread of its own wakes the application: once per poll, whatever completed in it. */

import { afterEach, describe, expect, it } from 'vitest';
import { batchedUdpAvailable } from '../../src/dgram-ext/index.js';
import type { CompletionQueue, ProtectionDomain, QueuePair, RdmaDevice } from '../../src/index.js';
import { builtApi, isBuilt } from '../support/built-api.js';

const SERVER = '127.53.5.1';
const CLIENT = '127.53.5.2';
const QKEY = 0x1111;
/** As many equal datagrams as the kernel takes in one train, and hands over in one piece. */
const MESSAGES = 16;

const open: RdmaDevice[] = [];

afterEach(async () => {
  for (const device of open.splice(0).reverse()) await device.close();
});

interface Receiver {
  readonly pd: ProtectionDomain;
  readonly qp: QueuePair;
  readonly cq: CompletionQueue;
}

/** A UD queue pair that can send, with a completion queue of its own and `receives` receives. */
async function datagramQueuePair(device: RdmaDevice, receives: number): Promise<Receiver> {
  const { Access } = await builtApi();
  const pd = await device.createPd();
  const cq = await device.createCq(64);
  const qp = await pd.createQp({ type: 'UD', sendCq: cq });
  const mr = await pd.regMr(4096, Access.LOCAL_WRITE);
  await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, qkey: QKEY });
  for (let i = 0; i < receives; i++) qp.postRecv({ sges: [mr.sge(0, 256)] });
  await qp.modify({ state: 'RTR' });
  await qp.modify({ state: 'RTS', sqPsn: 0 });
  return { pd, qp, cq };
}

/** A sender on this thread, and receivers whose NIC has a thread of its own. */
async function setUp(receivers: number, receives: number) {
  const { openDevice } = await builtApi();
  const server = await openDevice({ address: SERVER, engine: 'worker', io: 'mmsg' });
  open.push(server);
  const client = await openDevice({ address: CLIENT, io: 'mmsg' });
  open.push(client);
  const to: Receiver[] = [];
  for (let i = 0; i < receivers; i++) to.push(await datagramQueuePair(server, receives));
  const { qp, pd } = await datagramQueuePair(client, 0);
  const ah = await pd.createAh(server.address);
  const post = (...messages: Array<{ to: Receiver; text: string }>) =>
    qp.postSend(
      ...messages.map(({ to, text }) => ({
        opcode: 'SEND' as const,
        ah,
        remoteQpn: to.qp.qpn,
        remoteQkey: QKEY,
        inline: Buffer.from(text),
      })),
    );
  return { server, to, post };
}

describe.skipIf(!isBuilt || batchedUdpAvailable() !== undefined)('the interrupts of a worker engine', () => {
  it('are one for all that completes in one poll', async ({ skip }) => {
    const { server, to, post } = await setUp(MESSAGES, 1);
    skip(!/GSO, GRO/.test(server.portDescription), 'this kernel keeps no trains together');
    const before = server.counters().interrupts;
    const arrived = to.map(({ cq }) => cq.next());
    post(...to.map((receiver) => ({ to: receiver, text: 'one of a train' })));
    const completions = await Promise.all(arrived);
    expect(completions.map(({ qpn }) => qpn)).toEqual(to.map(({ qp }) => qp.qpn));
    expect(server.counters().interrupts - before).toBe(1);
  });

  it('do not wait for a second message', async () => {
    const { server, to, post } = await setUp(1, MESSAGES);
    const [receiver] = to;
    const before = server.counters().interrupts;
    for (let i = 0; i < MESSAGES; i++) {
      const arrived = receiver.cq.next();
      post({ to: receiver, text: 'alone' });
      await arrived;
    }
    expect(server.counters().interrupts - before).toBe(MESSAGES);
  });
});
