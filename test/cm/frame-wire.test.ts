/** The connection manager over frame ports: peers that have never heard of each other connect without waiting for a repetition. */

import { expect, it } from 'vitest';
import { openLiveSwitch } from '../../packages/lab/src/live/live-switch.js';
import { ConnectionManager } from '../../src/cm/connection-manager.js';
import { parseUdpEndpoint } from '../../src/dgram-ext/udp-endpoint.js';
import { IpAddress } from '../../src/packet/address.js';
import { openDevice } from '../../src/verbs/open-device.js';

const ANY_PORT = parseUdpEndpoint('127.0.0.1:0');

async function openEnd(address: string, switchPort: number, mtuBytes?: number) {
  const wire = { local: '127.0.0.1:0', remote: `127.0.0.1:${switchPort}` };
  const device = await openDevice({ address, frame: { ...wire, ...(mtuBytes !== undefined && { mtuBytes }) } });
  const cm = await ConnectionManager.open(device);
  const cq = await device.createCq(16);
  const pd = await device.createPd();
  return { device, cm, newQp: () => pd.createQp({ sendCq: cq }) };
}

async function openWire(addresses: readonly [string, string]) {
  const wire = await openLiveSwitch({ ports: ['a', 'b'].map((name) => ({ name, local: ANY_PORT })) });
  const a = await openEnd(addresses[0], wire.local('a').port);
  const b = await openEnd(addresses[1], wire.local('b').port, 1500);
  const close = async () => {
    for (const end of [a, b]) {
      await end.cm.close();
      await end.device.close();
    }
    await wire.close();
  };
  return { a, b, close };
}

it.each([
  ['IPv4', ['10.0.0.1', '10.0.0.2']],
  ['IPv6', ['fd00::1', 'fd00::2']],
] as const)('neighbours are asked for before the first datagram, %s', async (_, addresses) => {
  const { a, b, close } = await openWire(addresses);
  const listener = b.cm.listen(7174);
  const accepting = listener.next().then(async (request) => request.accept(await b.newQp()));
  const active = await a.cm.connect(b.device.address, 7174, await a.newQp(), { pathMtu: 1024 });
  await accepting;
  expect(a.cm.counters()).toMatchObject({ sent: 2, retries: 0 }); // REQ, RTU
  expect(b.cm.counters()).toMatchObject({ sent: 1, retries: 0 }); // REP
  await active.disconnect();
  await close();
});

it('a neighbour that nobody has is reported at once, not after fifteen requests', async () => {
  const { a, close } = await openWire(['10.0.0.1', '10.0.0.2']);
  const nobody = a.cm.connect(IpAddress.parse('10.0.0.9'), 7174, await a.newQp());
  await expect(nobody).rejects.toMatchObject({ code: 'ERR_ROCE_CONNECT' });
  expect(a.cm.counters().sent).toBe(0);
  await close();
});

it('the path MTU follows from the link', async () => {
  const { a, b, close } = await openWire(['10.0.0.1', '10.0.0.2']);
  expect([a.device.attributes.pathMtuMax, b.device.attributes.pathMtuMax]).toEqual([4096, 1024]);
  await close();
});
