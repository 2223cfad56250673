/** Two peers of a host may have queue pairs of one number: each packet still counts for its own flow. */

import { afterEach, describe, expect, test, vi } from 'vitest';
import { QueuePairNumbers } from '../../../../../src/nic/queue-pair-numbers.js';
import { runScenario } from '../../../src/sim/scenario/run-scenario.js';
import { parseScenario, type ScenarioFile } from '../../../src/sim/scenario/schema.js';

/** Two hosts send to one, and that one to both, at the same time. */
const STAR: ScenarioFile = {
  name: 'equal-numbers',
  duration: '2ms',
  topology: { kind: 'star', hosts: 3, rate: '10Gbps' },
  payload: 'virtual',
  flows: [
    { kind: 'flows', from: 'h0', to: 'h1..h2', bytes: 60_001, message: '16KiB', each: 2, stagger: '20us' },
    { kind: 'flows', from: 'h1..h2', to: 'h0', bytes: 30_001, message: '16KiB', start: '5us', stagger: '20us' },
  ],
};

/** Each NIC counts its queue pairs from the same number on. */
function numberAlike(): void {
  const next = new WeakMap<QueuePairNumbers, number>();
  vi.spyOn(QueuePairNumbers.prototype, 'take').mockImplementation(function (this: QueuePairNumbers) {
    const qpn = next.get(this) ?? 0x100;
    next.set(this, qpn + 1);
    return qpn;
  });
}

afterEach(() => vi.restoreAllMocks());

describe('queue pairs of two peers have one number', () => {
  test.each(['write', 'send', 'read'] as const)('%s: nothing is lost, and nothing counts as sent again', async (op) => {
    const scenario = parseScenario({ ...STAR, flows: STAR.flows.map((entry) => ({ ...entry, op })) as never });
    const apart = await runScenario(scenario);
    numberAlike();
    const alike = await runScenario(scenario);
    expect(alike.summary).toMatchObject({ droppedPackets: 0, retransmittedPackets: 0 });
    expect(alike.flows).toEqual(apart.flows);
    expect(alike.series).toEqual(apart.series);
  });

  test('what is sent again counts for the flow that sends it', async () => {
    const scenario = parseScenario({ ...STAR, nic: { timeout: 4 }, faults: 'h0>h2:every=40' });
    numberAlike();
    const { flows } = await runScenario(scenario);
    for (const { from, to, retransmittedPackets } of flows) {
      // Acknowledgements to h2 are lost, too: what h2 sends may come again.
      const isTouched = [from, to].includes('h2');
      if (!isTouched) expect(retransmittedPackets).toBe(0);
    }
    expect(flows.some(({ retransmittedPackets }) => retransmittedPackets > 0)).toBe(true);
  });

  test('and are made and freed with their flows', async () => {
    numberAlike();
    const atStart = await runScenario(parseScenario(STAR));
    const perFlow = await runScenario(parseScenario({ ...STAR, queuePairs: 'per-flow' }));
    expect(perFlow).toEqual(atStart);
  });
});
