/** Rate controls that need a peer which echoes in-band telemetry: over real sockets, and with a peer that does not say that it echoes. */

import { afterAll, expect, it } from 'vitest';
import type { ControlChannel } from '../../src/cm/control-channel.js';
import { previewHello } from '../../src/cm/exchange.js';
import { needsEcho, rateControlNames } from '../../src/dcqcn/rate-controls.js';
import { connect, listen, openDevice } from '../../src/index.js';

/** An address of this file alone. */
const ADDRESS = '127.68.0.9';
const devices = await Promise.all([ADDRESS, ADDRESS].map((address) => openDevice({ address, udpPort: 0 })));
afterAll(() => Promise.all(devices.map((device) => device.close())));

it('echoes bring alpha of DCTCP down while nothing is marked, on sockets', async () => {
  const region = devices[0].allocate(65_536);
  const listener = await listen(devices[0], { port: 0, region });
  const accepting = listener.accept();
  const peer = await connect(devices[1], {
    host: ADDRESS,
    port: listener.port,
    rateControl: { name: 'dctcp', gain: 0.5 },
  });
  await accepting;
  expect((await peer.qp.query()).alpha).toBe(1);
  const data = devices[1].allocate(65_536).fill(7);
  for (let i = 0; i < 20; i++) await peer.write(data, 0);
  expect((await peer.qp.query()).alpha).toBeLessThan(0.01);
  expect(Buffer.compare(region, data)).toBe(0);
  await peer.close();
  await listener.close();
});

/** What comes of a hello with these fields, for a side that wants HPCC. */
async function hear(fields: object) {
  const { attributes, address } = devices[0];
  const hello = {
    rocev2: 1,
    gid: attributes.address.gidHex,
    udpPort: 4791,
    qpn: 17,
    psn: 0,
    mtu: 1024,
    recovery: 'go-back-n',
    receiveBudgetPackets: 128,
    maxDestRdAtomic: 16,
    purpose: {},
    ...fields,
  };
  let refusal: string | undefined;
  const channel = {
    remoteAddress: address,
    receive: async () => hello,
    unread() {},
    refuse(reason: string) {
      refusal = reason;
    },
  };
  await previewHello(channel as unknown as ControlChannel, devices[0], {
    recovery: 'go-back-n',
    rateControl: { name: 'hpcc' },
  }).catch(() => {});
  return refusal;
}

it('refuses a peer that does not say that it echoes, by the name of the rate control', async () => {
  expect(await hear({})).toMatch(/rate control hpcc needs a peer that echoes/);
  expect(await hear({ echoes: true })).toBeUndefined();
});

it('needs echoes exactly for the schemes by telemetry', () => {
  expect(rateControlNames().filter((name) => needsEcho({ name }))).toEqual([
    'dctcp',
    'hpcc',
    'hpcc-pint',
    'powertcp',
    'nscc',
    'rccc',
  ]);
});
