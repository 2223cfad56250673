/** A path that works but is slow is not taken back. */

import { expect, test } from 'vitest';
import { Rig, readIo } from '../sk/rig.js';

const SECOND = 1e9;

async function afterHealing(delayNs: number): Promise<string> {
  const rig = await Rig.create();
  const host = rig.host();
  const { session } = await rig.until(host.open());
  for (let i = 0; i < 32; i++) await rig.until(session.submit(readIo(0, Buffer.alloc(4096))));
  host.failRdma('a test');
  await rig.pass(SECOND);
  rig.heal(delayNs);
  await rig.pass(14 * SECOND);
  expect(host.counters.probes).toBe(1);
  return host.state;
}

test('20 ms away where it was microseconds: held down again', async () => {
  expect(await afterHealing(20e6)).toBe('HOLD_DOWN');
});

test('as near as before: taken back', async () => {
  expect(await afterHealing(2000)).toBe('RDMA');
});
