/** Headroom on simulated cables: hosts with real NICs that keep to pauses, in virtual time. */

import { describe, expect, it } from 'vitest';
import { runScenario } from '../../src/sim/scenario/run-scenario.js';
import { parseScenario } from '../../src/sim/scenario/schema.js';

const RATE = 40e9;

/** Packets that four flows into one 40 Gb/s port lose with PFC alone. Without `headroomBytes` the switch computes it from rate and cable. */
async function lost(delayUs: number, headroomBytes?: number): Promise<{ lost: number; pauses: number }> {
  const scenario = parseScenario({
    name: 'headroom',
    duration: '1ms',
    topology: { kind: 'star', hosts: 5, rate: RATE, delay: `${delayUs}us` },
    nic: { cc: 'none' },
    switch: {
      pfc: { priorities: [0] },
      buffer: { totalBytes: '8MiB', ingressPoolBytes: '1MiB' },
      ...(headroomBytes !== undefined && { portDefaults: { headroomBytes } }),
    },
    flows: [{ kind: 'flows', from: 'h0..h3', to: 'h4' }],
  });
  const { summary } = await runScenario(scenario, { realNowNs: () => 0 });
  return { lost: summary.droppedPackets, pauses: summary.pauseFrames };
}

describe.each([1, 10])('headroom on cables of %d us', (delayUs) => {
  /** There and back, and a frame of 1024 bytes in front of the pause and one behind it. */
  const underWay = 2 * delayUs * 1e-6 * (RATE / 8) + 2 * 1120;

  it('is enough by the model, with which hosts may also take their time', async () => {
    const { lost: packets, pauses } = await lost(delayUs);
    expect(packets).toBe(0);
    expect(pauses).toBeGreaterThan(0);
  });

  it('is enough when it holds what is under way, and not when it holds less', async () => {
    expect((await lost(delayUs, underWay + 1120)).lost).toBe(0);
    // Meanwhile a flow's share of the port, a quarter, leaves.
    expect((await lost(delayUs, underWay * 0.6)).lost).toBeGreaterThan(0);
  });
});
