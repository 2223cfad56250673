/**
 * The incast of a read around a lost node (docs/extents.md): six nodes send to one reader through a switch with little memory. READs as an RPC makes them, 64 KiB a connection at a time
 * (packages/rpc/test/chunks.test.ts), fit into its buffer; whole pieces, pulled or pushed, do not.
 */

import { expect, it } from 'vitest';
import { runScenario } from '../../lab/src/sim/scenario/run-scenario.js';
import { parseScenario } from '../../lab/src/sim/scenario/schema.js';

const SOURCES = 6;
/** What is asked of each node at once: four pieces of 256 KiB. */
const BYTES = 2 ** 20;

async function reads(op: 'read' | 'write', message: string, outstanding: number) {
  const { summary } = await runScenario(
    parseScenario({
      name: 'reconstruct',
      duration: '3s',
      sample: '10ms',
      topology: { kind: 'star', hosts: 9, rate: '25Gbps', delay: '1us' },
      nic: { timeout: 14 },
      switch: { buffer: { totalBytes: '512KiB' } },
      flows: [
        {
          kind: 'incast',
          from: 'h0..h7',
          to: 'h8',
          fanIn: SOURCES,
          bytes: BYTES,
          every: '1s',
          until: '2s',
          op,
          message,
          outstanding,
        },
      ],
    }),
  );
  return { lost: summary.droppedPackets, done: summary.completions.count, p99Ms: summary.completions.p99Ns! / 1e6 };
}

it('READs of 64 KiB, one a connection, lose nothing and keep the link of the reader busy', async () => {
  const { lost, done, p99Ms } = await reads('read', '64KiB', 1);
  expect({ lost, done }).toEqual({ lost: 0, done: 2 * SOURCES });
  expect(p99Ms).toBeLessThan(3); // 6 MiB take 2.0 ms at 25 Gb/s.
});

it.each([
  ['READs of two whole pieces', 'read', 2],
  ['all pieces pushed at once', 'write', 4],
] as const)('twin: %s lose packets, and wait for timers', async (_, op, outstanding) => {
  const { lost, done, p99Ms } = await reads(op, '256KiB', outstanding);
  expect(lost).toBeGreaterThan(0);
  expect(done).toBe(2 * SOURCES);
  expect(p99Ms).toBeGreaterThan(60);
});
