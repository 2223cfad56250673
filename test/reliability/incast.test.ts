/**
 * Many senders, one receiver, one switch: with rate control and marks, with pauses alone, and with a plain tail-drop queue. Each sender has its share,
 * and with finite transfers each of them ends.
 */

import { describe, expect, it } from 'vitest';
import { runScenario } from '../../packages/lab/src/sim/scenario/run-scenario.js';
import { parseScenario, type ScenarioFile } from '../../packages/lab/src/sim/scenario/schema.js';
import { repeated } from '../support/repetitions.js';

const RED = { kind: 'red', kminBytes: 5_000, kmaxBytes: 200_000, pmax: 0.01 } as const;
const DEEP_QUEUE = { queuePackets: 32_768, bufferPackets: 65_536 } as const;

interface Setting {
  readonly name: string;
  readonly scenario: Pick<ScenarioFile, 'nic' | 'switch'>;
  /** Least Jain index of goodput, and least share of the link, of 16 and of 64 endless flows. */
  readonly jain: number;
  readonly efficiency: number;
}

const SETTINGS: readonly Setting[] = [
  {
    name: 'DCQCN and ECN marks',
    scenario: { nic: { cc: 'dcqcn', timeout: 14 }, switch: { ...DEEP_QUEUE, ecn: RED } },
    jain: 0.9,
    efficiency: 0.9,
  },
  {
    name: 'pauses alone',
    scenario: { nic: { timeout: 14 }, switch: { pfc: { priorities: [0] }, buffer: { totalBytes: 4_194_304 } } },
    jain: 0.99,
    efficiency: 0.95,
  },
];

function incast(senders: number, scenario: Setting['scenario'], rest: Partial<ScenarioFile> = {}): ScenarioFile {
  return {
    name: `incast-${senders}`,
    duration: '14ms',
    warmup: '7ms',
    topology: { kind: 'star', hosts: senders + 1, rate: '10Gbps' },
    flows: [{ kind: 'flows', from: `h0..h${senders - 1}`, to: `h${senders}` }],
    ...scenario,
    ...rest,
  };
}

const run = (file: ScenarioFile) => runScenario(parseScenario(file), { realNowNs: () => 0 });

describe.each(repeated(1, [16, 64]))('incast of %i to one', (senders) => {
  it.each(SETTINGS)(
    'with $name: fair shares of a full link, nobody fails',
    async ({ name, scenario, jain, efficiency }) => {
      const { summary } = await run(incast(senders, scenario));
      console.log(
        `${senders} to one, ${name}: Jain ${summary.jain.toFixed(3)}, ${(100 * summary.efficiency).toFixed(1)} % of the link`,
      );
      expect(summary).toMatchObject({ failedFlows: 0, droppedPackets: 0 });
      expect(summary.jain).toBeGreaterThan(jain);
      expect(summary.efficiency).toBeGreaterThan(efficiency);
    },
  );

  it.each(['go-back-n', 'selective-repeat'] as const)(
    'with a queue of 256 packets and nothing else, %s: every transfer ends, whole',
    async (recovery) => {
      const bytes = 128 << 10;
      const file = incast(
        senders,
        { nic: { recovery, inflight: 128, timeout: 8 }, switch: { queuePackets: 256 } },
        { duration: '4s', warmup: 0, sample: '1ms' },
      );
      const { flows, summary } = await run({
        ...file,
        flows: [{ kind: 'flows', from: `h0..h${senders - 1}`, to: `h${senders}`, bytes }],
      });
      const idealNs = (senders * bytes * 8) / 10;
      const worst = Math.max(...flows.map(({ completionNs }) => completionNs ?? Number.POSITIVE_INFINITY)) / idealNs;
      console.log(
        `${senders} to one, tail drop, ${recovery}: ${summary.droppedPackets} dropped, the last ended after ${worst.toFixed(2)} times the least possible`,
      );
      expect(flows.map((flow) => [flow.bytes, flow.failure])).toEqual(Array(senders).fill([bytes, null]));
      expect(summary.droppedPackets).toBeGreaterThan(0);
      expect(worst).toBeLessThan(8);
    },
  );
});
