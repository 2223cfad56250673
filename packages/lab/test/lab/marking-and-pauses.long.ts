/** The same flows at 100 Gb/s, with a PI controller in the place of RED, and with pauses alone. docs/lab.md has the tables. */

import { describe, expect, test } from 'vitest';
import { casesOfRound } from '../../../../test/support/rounds.js';
import { headroomBytes } from '../../src/switch/headroom.js';
import { failuresOf, queueOf, runBuiltIn } from './run-built-in.js';

test.each(casesOfRound([2, 10, 16, 64]))('100 Gb/s: %i flows', async (flows) => {
  expect(failuresOf(await runBuiltIn(`dcqcn-100g-n${flows}`))).toEqual([]);
});

test.each(casesOfRound([10, 64]))('a PI controller holds the queue of %i flows at its reference', async (flows) => {
  expect(failuresOf(await runBuiltIn(`dcqcn-pi-n${flows}`))).toEqual([]);
});

describe('PFC alone', () => {
  const MEMORY_BYTES = 4_194_304;
  const ALPHA = 1 / 8;
  const RESERVED_BYTES = 4096;
  const HEADROOM_BYTES = headroomBytes({
    rateBps: 40e9,
    cableMetres: 198, // 1 us
    portMtuBytes: 1184,
    losslessMtuBytes: 1184,
    cellBytes: 1,
    smallPacketPercent: 0,
  });

  /** What arrives after an XOFF: two cables of 1 us full, and a frame at either end. */
  const UNDER_WAY_BYTES = 2 * 5000 + 2 * 1184;

  test.each(casesOfRound([2, 10, 16, 64]))(
    '%i ingress queues fill their dynamic thresholds, and of their headroom a part',
    async (flows) => {
      const result = await runBuiltIn(`pfc-n${flows}`);
      expect(failuresOf(result)).toEqual([]);
      const sharedBytes = MEMORY_BYTES - (flows + 1) * (HEADROOM_BYTES + RESERVED_BYTES);
      const thresholds = (flows * ALPHA * sharedBytes) / (1 + flows * ALPHA) + flows * RESERVED_BYTES;
      const { maxBytes } = queueOf(result, `s0>h${flows}`);
      expect(maxBytes).toBeGreaterThan(0.99 * thresholds);
      expect(maxBytes).toBeLessThan(thresholds + flows * UNDER_WAY_BYTES);
    },
  );
});
