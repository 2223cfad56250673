/**
 * Rate controls by telemetry, packets and switches included: 8 flows into one port of 100 Gb/s, as in the incast of HPCC (SIGCOMM 2019, §5.2). Efficiency is of
 * what the link carries without trailers, so records cost 6 % of it at 1 KiB.
 */

import { describe, expect, it } from 'vitest';
import { runScenario } from '../../../src/sim/scenario/run-scenario.js';
import { parseScenario } from '../../../src/sim/scenario/schema.js';

async function incast(cc: string | object, options: object = {}) {
  const { summary } = await runScenario(
    parseScenario({
      name: 'incast',
      duration: '1500us',
      warmup: '700us',
      topology: { kind: 'star', hosts: 9, rate: '100Gbps', delay: '1us' },
      nic: { cc, timeout: 14 },
      switch: { queuePackets: 32_768, bufferPackets: 65_536, ...options },
      flows: [{ kind: 'flows', from: 'h0..h7', to: 'h8', outstanding: 4 }],
    }),
    { realNowNs: () => 0 },
  );
  return summary;
}

const BDP_BYTES = (100e9 * 4.5e-6) / 8;

describe('an incast of 8', () => {
  it.each(['hpcc', 'hpcc-pint', 'powertcp'])('leaves nearly no queue under %s, at a link that is used', async (cc) => {
    const { queueP99Bytes, efficiency, jain, droppedPackets } = await incast(cc);
    expect(queueP99Bytes).toBeLessThan(0.2 * BDP_BYTES);
    expect(efficiency).toBeGreaterThan(0.88);
    expect(jain).toBeGreaterThan(0.95);
    expect(droppedPackets).toBe(0);
  });

  it.each(['hpcc', 'powertcp'])(
    'leaves a queue of first windows under %s where the switch writes nothing',
    async (cc) => {
      expect((await incast(cc, { int: { isOn: false } })).queueMeanBytes).toBeGreaterThan(10 * BDP_BYTES);
    },
  );

  it.each(['swift', 'theta-powertcp'])('holds the round trip that %s aims at', async (cc) => {
    const { queueMeanBytes, efficiency, jain } = await incast(cc);
    // Swift: 23 us, and up to 100 us more for windows of few packets. theta-PowerTCP: T of 12 us.
    const [low, high] = cc === 'swift' ? [20, 60] : [6, 16];
    expect((queueMeanBytes * 8) / 100e9).toBeGreaterThan((low - 4.5) * 1e-6);
    expect((queueMeanBytes * 8) / 100e9).toBeLessThan((high - 4.5) * 1e-6);
    expect(efficiency).toBeGreaterThan(0.98);
    expect(jain).toBeGreaterThan(0.95);
  });

  it('stands at the step of marking under dctcp, and nowhere without marks', async () => {
    const step = { kind: 'red', kminBytes: 65_000, kmaxBytes: 65_000, pmax: 1 };
    const cc = { name: 'dctcp', additiveIncreaseBps: '100Mbps', gain: 0.25 };
    const marked = await incast(cc, { ecn: step });
    expect(marked.queueMeanBytes).toBeGreaterThan(0.2 * 65_000);
    expect(marked.queueMeanBytes).toBeLessThan(2.5 * 65_000);
    expect(marked.jain).toBeGreaterThan(0.95);
    expect(marked.cnps).toBe(0);
    expect((await incast(cc)).queueMeanBytes).toBeGreaterThan(10 * marked.queueMeanBytes);
  });
});
