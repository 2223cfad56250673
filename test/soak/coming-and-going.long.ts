/**
 * Connections come and go for a minute, or for SOAK_SECONDS: what the process occupies stays flat. Memory is compared by the least of a
 * quarter, which is what a collection leaves. The engines take turns in the rounds; memory.long.ts has both each time.
 */

import { describe, expect, it } from 'vitest';
import { comeAndGo, least } from '../e2e/coming-and-going.js';
import { isBuilt } from '../e2e/executable.js';
import { casesOfRound } from '../support/rounds.js';

const MIB = 1 << 20;
/** One descriptor of each connection would be hundreds. */
const DESCRIPTORS_MAX = 16;
const seconds = Number(process.env['SOAK_SECONDS'] ?? 60);

describe.skipIf(!isBuilt)(`${seconds} s of connections that come and go`, () => {
  it.each(casesOfRound(['worker', 'inline']))(
    'leave memory and descriptors flat: %s',
    async (engine) => {
      const { samples, done } = await comeAndGo({ engine, seconds });
      const quarter = Math.floor(samples.length / 4);
      const [early, late] = [samples.slice(quarter, 2 * quarter), samples.slice(-quarter)];
      const growth = (what: 'rss' | 'heapUsed' | 'arrayBuffers') =>
        Math.round((least(late, what) - least(early, what)) / MIB);
      console.log(JSON.stringify({ engine, done, MiB: { rss: growth('rss'), heapUsed: growth('heapUsed') } }));
      expect(done['wrong']).toBe(0);
      expect(growth('rss')).toBeLessThan(48);
      expect(growth('heapUsed')).toBeLessThan(8);
      expect(growth('arrayBuffers')).toBeLessThan(48);
      // Those of memory of closed connections are closed by a collection.
      expect(least(late, 'descriptors') - least(early, 'descriptors')).toBeLessThan(DESCRIPTORS_MAX);
    },
    (seconds + 60) * 1000,
  );
});
