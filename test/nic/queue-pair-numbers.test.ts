/** Queue pair numbers: packets of a connection that is gone must not find another one. */

import { expect, it } from 'vitest';
import { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import { SimHost } from '../../packages/lab/src/sim/sim-host.js';
import type { RandomSource } from '../../src/core/random.js';
import { IpAddress } from '../../src/packet/address.js';
import { RdmaDevice } from '../../src/verbs/device.js';

/** Deals the same few numbers over and over, each twice in a row. A number between bounds takes two draws. */
function shortCycle(length: number): RandomSource {
  let n = 0;
  return { u32: () => (n++ % 2 === 0 ? 0 : Math.floor(n / 4) % length) };
}

it('a number is not given out again before 256 others have been', async () => {
  const host = new SimHost({
    address: IpAddress.parse('192.0.2.1'),
    events: new EventQueue(),
    random: shortCycle(300),
  });
  const device = await RdmaDevice.over(host);
  const pd = await device.createPd();
  const cq = await device.createCq(1);
  const numbers: number[] = [];
  for (let n = 0; n < 1000; n++) {
    const qp = await pd.createQp({ sendCq: cq });
    expect(numbers.slice(-256)).not.toContain(qp.qpn);
    numbers.push(qp.qpn);
    await qp.close();
  }
  expect(new Set(numbers).size).toBe(300);
});

it('a number in use is not given out', async () => {
  const host = new SimHost({ address: IpAddress.parse('192.0.2.1'), events: new EventQueue(), random: shortCycle(20) });
  const device = await RdmaDevice.over(host);
  const pd = await device.createPd();
  const cq = await device.createCq(1);
  const pairs = await Promise.all(Array.from({ length: 20 }, () => pd.createQp({ sendCq: cq })));
  expect(new Set(pairs.map(({ qpn }) => qpn)).size).toBe(20);
});
