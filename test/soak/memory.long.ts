/** Connections that come and go leave no memory behind, in neither thread of a worker engine. */

import { expect, it } from 'vitest';
import { comeAndGo, least } from '../e2e/coming-and-going.js';
import { isBuilt } from '../e2e/executable.js';

const MIB = 1 << 20;
const CONNECTS = 600;

it.skipIf(!isBuilt).each(['worker', 'inline'])(
  'after 600 connects and closes a process occupies what it did before: %s',
  async (engine) => {
    const { samples, done } = await comeAndGo({ engine, connects: CONNECTS });
    expect(done).toMatchObject({ connections: CONNECTS + 20, wrong: 0 });
    const [start] = samples;
    const end = samples.at(-1)!;
    expect(end.rss - start.rss).toBeLessThan(150 * MIB);
    expect(least(samples.slice(-4), 'arrayBuffers')).toBeLessThan(start.arrayBuffers + 64 * MIB);
    // Those of memory of closed connections are closed by a collection.
    expect(least(samples.slice(-8), 'descriptors')).toBeLessThan(start.descriptors + CONNECTS / 4);
  },
  300_000, // Seconds on a machine of its own.
);
