/** Primitives whose owner's NIC has a thread of its own. */

import { describe, it } from 'vitest';
import { builtApi, builtPrimitives, isBuilt } from '../../../test/support/built-api.js';
import { devicesAt } from '../../../test/support/devices.js';
import { actWhileThisThreadStandsStill } from '../../../test/support/standing-still.js';

const ADDRESS = '127.0.4.6';
const ADDS = 10;

describe.runIf(isBuilt)('primitives on a worker engine', () => {
  const device = devicesAt(ADDRESS, async (options) => (await builtApi()).openDevice(options));

  it('work while the thread of their owner is blocked', async () => {
    const { servePrimitives } = await builtPrimitives();
    const owner = await servePrimitives({ device: await device({ engine: 'worker' }), port: 0 });
    await actWhileThisThreadStandsStill({
      imports: { openPrimitives: 'packages/primitives/dist/index.js' },
      address: ADDRESS,
      prepare: `
        const primitives = await openPrimitives({ device, host: '${ADDRESS}', port: ${owner.port} });
        const counter = await primitives.counter('c');
        const lock = await primitives.lock('l');`,
      act: `
        for (let k = 0; k < ${ADDS}; k++) await lock.run(async () => counter.compareAndSet(BigInt(k), BigInt(k + 1)));
        if (await counter.get() !== ${ADDS}n) throw new Error('wrong count');`,
    });
  });
});
