/** Histories of four readers and the owner under loss, reordering and duplicates are linearizable for each key. */

import { describe, expect, it } from 'vitest';
import { randomUnit } from '../../../src/core/random.js';
import { runHistory, type Twist } from './histories.js';

const FAULTS = [
  undefined,
  'random=0.02',
  'reorder=0.05;duplicate=0.05',
  'random=0.02;reorder=0.05;duplicate=0.05;corrupt=0.01',
];
const SEEDS = 6;

describe('histories', () => {
  const sum = { torn: 0, late: 0, asked: 0, moved: 0 };

  it.each(FAULTS)('under %j are linearizable', async (faults) => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const verdict = await runHistory(seed, faults);
      expect(verdict, `seed ${seed}`).toMatchObject({ linearizable: true, failed: 0 });
      for (const name of ['torn', 'late', 'asked', 'moved'] as const) sum[name] += verdict[name];
    }
  });

  it('under bursts are linearizable, also where a burst outlasts the retries and a connection ends', async () => {
    let reconnects = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const verdict = await runHistory(seed, 'burst=0.01,0.2');
      expect(verdict, `seed ${seed}`).toMatchObject({ linearizable: true });
      reconnects += verdict.reconnects;
    }
    expect(reconnects).toBeGreaterThan(0);
  });

  it('meet changes, long waits and compaction, and ask the owner in the end', () => {
    for (const count of Object.values(sum)) expect(count).toBeGreaterThan(0);
  });

  it('of a reader that remembers values are not', async () => {
    const forgetful: Twist = (kv, random) => {
      const known = new Map<string, string | undefined>();
      return new Proxy(kv, {
        get: (target, name) => {
          if (name !== 'get') return (target[name as 'set'] as () => unknown).bind(target);
          return async (key: string) => {
            if (!known.has(key) || randomUnit(random) < 0.5) known.set(key, await target.get(key));
            return known.get(key);
          };
        },
      });
    };
    const verdicts = [];
    for (let seed = 1; seed <= 4; seed++)
      verdicts.push((await runHistory(seed, undefined, { twist: forgetful })).linearizable);
    expect(verdicts).toContain(false);
  });
});

describe('histories whose owner dies and comes back', () => {
  it.each([undefined, 'random=0.01;reorder=0.05;duplicate=0.05'])('under %j are linearizable', async (faults) => {
    let [reconnects, failed] = [0, 0];
    for (let seed = 1; seed <= 3; seed++) {
      const verdict = await runHistory(seed, faults, { restarts: 3 });
      expect(verdict, `seed ${seed}`).toMatchObject({ linearizable: true });
      reconnects += verdict.reconnects;
      failed += verdict.failed;
    }
    expect(reconnects).toBeGreaterThan(5);
    expect(failed).toBeGreaterThan(0);
  });

  it('with a snapshot that the next one begins with are linearizable: it has each key as it was at one moment', async () => {
    let restored = 0;
    for (let seed = 1; seed <= 3; seed++) {
      const verdict = await runHistory(seed, 'random=0.01', { restarts: 3, snapshots: true });
      expect(verdict, `seed ${seed}`).toMatchObject({ linearizable: true });
      restored += verdict.restored;
    }
    expect(restored).toBeGreaterThan(0);
  });

  it('are not if a snapshot is taken for all that was written', async () => {
    const verdicts = [];
    for (let seed = 1; seed <= 3; seed++) {
      const verdict = await runHistory(seed, undefined, { restarts: 3, snapshots: true, areRestartsHidden: true });
      verdicts.push(verdict.linearizable);
    }
    expect(verdicts).toContain(false);
  });

  it('are not without the deaths: a new owner has nothing of the old one', async () => {
    const verdicts = [];
    for (let seed = 1; seed <= 3; seed++)
      verdicts.push((await runHistory(seed, undefined, { restarts: 3, areRestartsHidden: true })).linearizable);
    expect(verdicts).toContain(false);
  });
});
