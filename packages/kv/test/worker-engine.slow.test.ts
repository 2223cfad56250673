/** A store whose NIC has a thread of its own. */

import { describe, expect, it } from 'vitest';
import { builtApi, builtKv, isBuilt } from '../../../test/support/built-api.js';
import { devicesAt } from '../../../test/support/devices.js';
import { actWhileThisThreadStandsStill } from '../../../test/support/standing-still.js';

const ADDRESS = '127.0.4.2';
const SIZES = { bytes: 4 << 20, entries: 1000, valueBytesMax: 4096 };
const GETS = 30;

describe.runIf(isBuilt)('a store on a worker engine', () => {
  const device = devicesAt(ADDRESS, async (options) => (await builtApi()).openDevice(options));

  async function serve() {
    const { serveKv } = await builtKv();
    return serveKv<string>({ device: await device({ engine: 'worker' }), port: 0, codec: 'string', ...SIZES });
  }

  it('answers GETs while the thread of its owner is blocked', async () => {
    const owner = await serve();
    await owner.set('short', 'on');
    await owner.set('long', 'x'.repeat(4000));
    await actWhileThisThreadStandsStill({
      imports: { openKv: 'packages/kv/dist/index.js' },
      address: ADDRESS,
      prepare: `const kv = await openKv({ device, host: '${ADDRESS}', port: ${owner.port}, codec: 'string' });`,
      act: `
        for (let k = 0; k < ${GETS}; k++) {
          const [short, long, none] = await kv.getMany(['short', 'long', 'none']);
          if (short !== 'on' || long !== 'x'.repeat(4000) || none !== undefined) throw new Error('wrong value');
        }`,
    });
  });

  it('gives right values while they are replaced at full speed', async () => {
    const owner = await serve();
    const { openKv } = await builtKv();
    const reader = await openKv<string>({ device: await device(), host: ADDRESS, port: owner.port, codec: 'string' });
    const keys = ['a', 'b', 'c'];
    let isDone = false;
    const writing = (async () => {
      for (let k = 0; !isDone; k++) {
        for (let n = 0; n < 20; n++) await owner.set(keys[n % 3], `${k}:`.repeat(n % 2 === 0 ? 10 : 300));
        await new Promise(setImmediate);
      }
    })();
    const seen = new Set<string>();
    for (let k = 0; k < 200; k++) {
      for (const value of await reader.getMany(keys)) {
        if (value === undefined) continue;
        const [first] = value.split(':');
        // A mixture of two values would show two numbers.
        expect(value === `${first}:`.repeat(10) || value === `${first}:`.repeat(300)).toBe(true);
        seen.add(first);
      }
    }
    isDone = true;
    await writing;
    expect(seen.size).toBeGreaterThan(1);
  });
});
