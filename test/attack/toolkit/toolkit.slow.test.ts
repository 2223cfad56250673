/** The tools of the attack tests do what they say: a forged packet passes every check but those that it is forged to fail. */

import { afterEach, expect, it } from 'vitest';
import { ConnectionManager, connect, listen, openDevice, type RdmaDevice } from '../../../src/index.js';
import { eventually } from '../../support/eventually.js';
import { Forger } from './forged-packets.js';
import { forgedReq, forgeMad, LONGEST_WAITS, sendMad } from './forged-requests.js';
import { goOnWriting, timeConnects } from './honest-peers.js';
import { crowd, hangUp, held, helloOf, nested, strangerConnects } from './hostile-connections.js';

const SERVER = '127.0.8.201';
const CLIENT = '127.0.8.202';
const STRANGER = '127.0.8.203';

const devices: RdmaDevice[] = [];
const forgers: Forger[] = [];
afterEach(async () => {
  for (const forger of forgers.splice(0)) forger.close();
  await Promise.all(devices.splice(0).map((device) => device.close()));
});

async function device(address: string, udpPort = 0): Promise<RdmaDevice> {
  const opened = await openDevice({ address, udpPort });
  devices.push(opened);
  return opened;
}

async function forger(from: string, to: RdmaDevice): Promise<Forger> {
  const opened = await Forger.open({ from, to: to.attributes.address.text, udpPort: to.attributes.udpPort });
  forgers.push(opened);
  return opened;
}

it('a forged REQ reaches the listener of its port; with a flipped bit the ICRC is wrong', async () => {
  const victim = await device(SERVER, 4791);
  await using manager = await ConnectionManager.open(victim);
  const listener = manager.listen(7471);
  const stranger = await forger(STRANGER, victim);
  const request = { source: STRANGER, destination: SERVER, port: 7471, fields: LONGEST_WAITS };
  const spoiled = forgeMad(
    { from: STRANGER, sourcePort: stranger.sourcePort, to: SERVER },
    forgedReq({ ...request, communicationId: 1 }),
  );
  spoiled[100] ^= 1;
  await stranger.sendBytes(spoiled);
  await sendMad(stranger, forgedReq({ ...request, communicationId: 2 }));
  expect((await listener.next()).remote.text).toBe(STRANGER);
  expect(victim.counters().rx_icrc_errors).toBe(1);
  await stranger.cnp(0x123456);
  await eventually(() => victim.counters().rx_drop_no_qp === 1);
  expect(stranger.sent).toBe(3);
});

it('a hello that claims nothing false is answered; a crowd holds its connections', async () => {
  const victim = await device(SERVER);
  const listener = await listen(victim, { port: 0, region: victim.allocate(8192) });
  void (async () => {
    for await (const connection of listener) void connection;
  })();
  const target = { host: SERVER, port: listener.port, from: STRANGER };
  const greeter = await strangerConnects(target);
  const answer = new Promise((resolve) => greeter.once('data', resolve));
  greeter.write(helloOf(STRANGER));
  expect(String(await answer)).toContain('"rocev2":1');
  greeter.destroy();
  const [garbler] = await crowd(1, { ...target, text: `${nested(20)}\n` });
  await eventually(() => held([garbler]) === 0);
  const sockets = await crowd(1, target);
  expect(held(sockets)).toBe(1);
  hangUp(sockets);
  expect(held(sockets)).toBe(0);

  const client = await device(CLIENT);
  const peer = await connect(client, { host: SERVER, port: listener.port });
  const service = goOnWriting(peer, { offset: 4096 });
  const times = await timeConnects(3, () => connect(client, { host: SERVER, port: listener.port }));
  expect(times).toMatchObject({ success: 1, failures: [] });
  expect(times.p50).toBeLessThanOrEqual(times.p99);
  await eventually(() => service.verified > 3);
  expect((await service.stop()).failure).toBeUndefined();
});
