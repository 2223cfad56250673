/** Clients that an owner refuses. */

import { expect, it } from 'vitest';
import { connect } from '../../../src/index.js';
import { devicesAt } from '../../../test/support/devices.js';
import { openPrimitives, servePrimitives } from '../src/index.js';

const ADDRESS = '127.0.4.77';
const device = devicesAt(ADDRESS);

it('are reported once, and others are served', async () => {
  const notices: string[] = [];
  const onNotice = (notice: string) => void notices.push(notice);
  const { port } = await servePrimitives({ device: await device(), port: 0, host: ADDRESS, onNotice });
  const other = { host: ADDRESS, port, recovery: 'selective-repeat' } as const;
  for (let k = 0; k < 3; k++) await expect(connect(await device(), other)).rejects.toThrow(/recovery/);
  const primitives = await openPrimitives({ device: await device(), host: ADDRESS, port });
  expect(await (await primitives.counter('c')).add(1n)).toBeDefined();
  expect(notices).toEqual([expect.stringMatching(/^a client at 127\.0\.4\.77:\d+ was refused: .*only counted\)$/)]);
});
