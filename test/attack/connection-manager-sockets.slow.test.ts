/** REQs by the thousand on real sockets: QP1 of a listening device is flooded from another address while an honest peer connects. */

import { afterEach, expect, it } from 'vitest';
import { type CmListener, ConnectionManager, openDevice, type RdmaDevice } from '../../src/index.js';
import { Forger } from './toolkit/forged-packets.js';
import { forgedReq, LONGEST_WAITS, sendMad } from './toolkit/forged-requests.js';
import { timeConnects } from './toolkit/honest-peers.js';

const SERVER = '127.0.3.1';
const CLIENT = '127.0.3.2';
const STRANGER = '127.0.3.66';
const PORT = 7471;
const CONNECTS = 20;
/** Forged datagrams between two turns of the event loop that all sides share here. */
const BURST = 8;

const devices: RdmaDevice[] = [];
const managers: ConnectionManager[] = [];
afterEach(async () => {
  await Promise.all(managers.splice(0).map((manager) => manager.close()));
  await Promise.all(devices.splice(0).map((device) => device.close()));
});

async function end(address: string) {
  const device = await openDevice({ address });
  devices.push(device);
  const pd = await device.createPd();
  const cq = await device.createCq(64);
  const newQp = () => pd.createQp({ sendCq: cq, maxSendWr: 4, maxRecvWr: 4 });
  const manager = await ConnectionManager.open(device);
  managers.push(manager);
  return { device, newQp, manager };
}

/** Accepts whoever comes, side by side. */
async function serve(listener: CmListener, newQp: Awaited<ReturnType<typeof end>>['newQp']): Promise<void> {
  for await (const request of listener) {
    const qp = await newQp();
    void request.accept(qp).catch(() => qp.close());
  }
}

it(`a flood of REQs leaves an honest peer its ${CONNECTS} connections`, async () => {
  const server = await end(SERVER);
  const client = await end(CLIENT);
  void serve(server.manager.listen(PORT), server.newQp);
  const stranger = await Forger.open({ from: STRANGER, to: SERVER });
  let flooding = true;
  const flood = (async () => {
    for (let id = 1; flooding; id++) {
      await sendMad(
        stranger,
        forgedReq({ source: STRANGER, destination: SERVER, port: PORT, communicationId: id, fields: LONGEST_WAITS }),
      );
      if (id % BURST === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  const times = await timeConnects(CONNECTS, async () => {
    const qp = await client.newQp();
    const connection = await client.manager.connect(server.device.address, PORT, qp);
    await connection.disconnect();
    await qp.close();
  });
  flooding = false;
  await flood;
  stranger.close();

  const { evicted, unmatched } = server.manager.counters();
  const told = `${stranger.sent} forged, p50 ${times.p50.toFixed(1)} ms, p99 ${times.p99.toFixed(1)} ms, ${evicted} crowded out`;
  expect(times.failures, told).toEqual([]);
  // A datagram lost in the crowd comes again after 4.8 s; an honest one is to come through at once.
  expect(times.p99, told).toBeLessThan(4000);
  expect(stranger.sent, told).toBeGreaterThan(10 * CONNECTS);
  expect(unmatched, told).toBe(0);
}, 120_000);
