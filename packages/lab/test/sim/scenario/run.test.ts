import { describe, expect, test } from 'vitest';
import type { ScenarioResult } from '../../../src/sim/scenario/result.js';
import { runScenario } from '../../../src/sim/scenario/run-scenario.js';
import { parseScenario, type ScenarioFile } from '../../../src/sim/scenario/schema.js';

const INCAST: ScenarioFile = {
  name: 'incast',
  duration: '2ms',
  warmup: '1ms',
  topology: { kind: 'star', hosts: 5 },
  nic: { cc: 'dcqcn' },
  switch: {
    ecn: { kind: 'red', kminBytes: 5000, kmaxBytes: 200_000, pmax: 0.01 },
    queuePackets: 8192,
    bufferPackets: 16_384,
  },
  flows: [{ kind: 'flows', from: 'h0..h3', to: 'h4' }],
};

function run(file: ScenarioFile, options: { until?: number } = {}): Promise<ScenarioResult> {
  return runScenario(parseScenario(file), {
    realNowNs: () => 0,
    ...(options.until !== undefined && { onProgress: (done: number) => done < options.until! }),
  });
}

describe('a run', () => {
  test('that ends before its first flow has a result', async () => {
    const flows: ScenarioFile['flows'] = [{ kind: 'poisson', from: 'h0', to: 'h1', offered: '1Mbps' }];
    const { flows: planned, summary } = await run({ ...INCAST, duration: '1us', warmup: 0, sample: '1us', flows });
    expect(planned).toEqual([]);
    expect(summary.theoreticalEfficiency).toBeNull();
  });

  test('repeats exactly with the same seed, and not with another', async () => {
    const first = await run(INCAST);
    const second = await run(INCAST);
    const other = await run({ ...INCAST, seed: 2 });
    expect(second).toEqual(first);
    expect(other.traceHash).not.toBe(first.traceHash);
  });

  test('does the same whatever is looked at', async () => {
    const first = await run(INCAST);
    const often = await run({ ...INCAST, sample: '1us', warmup: '500us' });
    expect(often.traceHash).toBe(first.traceHash);
  });

  test('can be ended early, with what there is', async () => {
    const result = await run(INCAST, { until: 0.5 });
    expect(result.virtualSeconds).toBeCloseTo(0.001, 5);
    expect(result.flows).toHaveLength(4);
  });

  test('a flow that has not ended counts with its time so far: percentiles are bounds from below', async () => {
    const { summary } = await run({
      ...INCAST,
      warmup: 0,
      flows: [
        { kind: 'flows', from: 'h0', to: 'h4', bytes: '64KB' },
        { kind: 'flows', from: 'h1', to: 'h4', bytes: '1GB' },
        { kind: 'flows', from: 'h2', to: 'h4', bytes: '1GB', start: '3ms' }, // Never begins.
      ],
    });
    expect(summary.completions).toMatchObject({ count: 1, unfinished: 1, p99Ns: 2e6 });
    expect(summary.smallCompletions).toMatchObject({ count: 1, unfinished: 0 });
    expect(summary.smallCompletions.p99Ns).toBeLessThan(1e6);
  });

  test('with many receivers the efficiency is that of all their links', async () => {
    const { summary } = await run({ ...INCAST, flows: [{ kind: 'flows', from: 'h0..h1', to: 'h2..h3' }] });
    expect(summary.efficiency).toBeGreaterThan(0.9);
    expect(summary.efficiency).toBeLessThanOrEqual(1.001);
    expect(summary.goodputBps).toBeGreaterThan(1.8 * 37e9);
  });

  test.each(['write', 'read', 'send'] as const)('moves finite flows by %s and says when they were done', async (op) => {
    const result = await run({
      ...INCAST,
      duration: '20ms',
      warmup: 0,
      flows: [{ kind: 'flows', from: 'h0..h1', to: 'h2', op, bytes: '1MB', message: '64KiB' }],
    });
    expect(result.flows.map(({ bytes, failure }) => ({ bytes, failure }))).toEqual([
      { bytes: 1e6, failure: null },
      { bytes: 1e6, failure: null },
    ]);
    for (const { completionNs } of result.flows) {
      // Two megabytes at 40 Gb/s take 0.4 ms; the two flows end at most that apart.
      expect(completionNs).toBeGreaterThan(200_000);
      expect(completionNs).toBeLessThan(1_500_000);
    }
    expect(result.summary.completions.count).toBe(2);
  });

  test.each(['write', 'read', 'send'] as const)(
    'has the payload of %s in its series of rates, each byte once',
    async (op) => {
      const { series, summary } = await run({
        ...INCAST,
        duration: '5ms',
        warmup: 0,
        sample: '10us',
        faults: 'h0>h1:every=50',
        flows: [{ kind: 'flows', from: 'h0', to: 'h1', op, bytes: 999_999, message: '10001' }],
      });
      expect(summary.retransmittedPackets).toBeGreaterThan(0);
      expect(series.rateBps[0].reduce((bytes, rateBps) => bytes + (rateBps * 10_000) / 8e9, 0)).toBeCloseTo(999_999);
    },
  );

  test('says what shared memory was used at most, and finds it in assertions', async () => {
    expect((await run(INCAST)).buffers).toEqual([]);
    const { buffers, assertions } = await run({
      ...INCAST,
      nic: {},
      switch: { pfc: { priorities: [0] }, buffer: { totalBytes: '2MB' } },
      assertions: [{ name: 'headroom', value: 'buffers[s0].headroomMaxBytes', min: 1 }],
    });
    expect(buffers).toHaveLength(1);
    // Four queues of alpha 1/8 take a third of what is shared.
    expect(buffers[0].sharedMaxBytes / buffers[0].sharedBytes).toBeCloseTo(1 / 3, 2);
    expect(buffers[0].headroomMaxBytes).toBeLessThanOrEqual(buffers[0].headroomBytes);
    expect(assertions[0].ok).toBe(true);
  });

  test('checks its assertions', async () => {
    const { assertions } = await run({
      ...INCAST,
      assertions: [
        { name: 'holds', value: 'summary.jain', min: 0.1 },
        { name: 'does not', value: 'queues[s0>h4].maxBytes', max: 1 },
      ],
    });
    expect(assertions.map(({ ok }) => ok)).toEqual([true, false]);
    expect(assertions[1].detail).toMatch(/^queues\[s0>h4\]\.maxBytes is \d+.*should be at most 1$/);
  });

  test('fails an assertion about what is not there, and says what is', async () => {
    const { assertions } = await run({
      ...INCAST,
      assertions: [
        { name: 'no such field', value: 'summary.joy', min: 1 },
        { name: 'no such queue', value: 'queues[s0>h9].maxBytes', max: 1 },
        { name: 'no number', value: 'flows[0].failure', max: 1 },
      ],
    });
    expect(assertions.map(({ ok }) => ok)).toEqual([false, false, false]);
    expect(assertions[0].detail).toMatch(
      /^the result has no number at 'summary\.joy': there are goodputBps, efficiency, /,
    );
    expect(assertions[1].detail).toContain('[s0>h4]');
    expect(assertions[2].detail).toContain('completionNs');
  });

  test.each([
    ['a host', { flows: [{ kind: 'flows', from: 'h0', to: 'h9' }] }, "flows[0].to: 'h9' is not there"],
    ['a port', { happenings: [{ do: 'block', at: 0, switch: 's0', port: 'h9' }] }, 'there is no port s0>h9'],
    ['a receiver', { flows: [{ kind: 'flows', from: 'h0', to: 'h0' }] }, 'flows[0]: h0 has nobody but itself'],
    [
      'a receiver of random flows',
      { flows: [{ kind: 'poisson', from: 'h0..h1', to: 'h1', offered: 1e9 }] },
      'flows[0]: h1 has nobody but itself',
    ],
  ])('refuses %s that does not exist', async (_what, change, message) => {
    await expect(run({ ...INCAST, ...(change as Partial<ScenarioFile>) })).rejects.toThrow(message);
  });
});

test('a blocked egress holds its flow, and lets it go on', async () => {
  const blocked = await run({
    ...INCAST,
    happenings: [{ do: 'block', at: 0, switch: 's0', port: 'h4' }],
    flows: [{ kind: 'flows', from: 'h0', to: 'h4', bytes: '64KB', message: '64KB' }],
  });
  expect(blocked.flows[0].bytes).toBe(0);
  const released = await run({
    ...INCAST,
    happenings: [
      { do: 'block', at: 0, switch: 's0', port: 'h4' },
      { do: 'unblock', at: '1ms', switch: 's0', port: 'h4' },
    ],
    flows: [{ kind: 'flows', from: 'h0', to: 'h4', bytes: '64KB', message: '64KB' }],
  });
  expect(released.flows[0].completionNs).toBeGreaterThan(1e6);
});

test('flows across a Clos network take both spines, each flow one of them', async () => {
  const result = await run({
    ...INCAST,
    duration: '5ms',
    warmup: 0,
    topology: { kind: 'leaf-spine', leaves: 2, spines: 2, hostsPerLeaf: 4 },
    flows: [{ kind: 'flows', from: 'h0..h3', to: 'h4..h7', bytes: '128KiB' }],
  });
  expect(result.summary).toMatchObject({ completions: { count: 16 }, droppedPackets: 0, retransmittedPackets: 0 });
  const used = (port: string) => result.queues.find((queue) => queue.port === port)!.utilization;
  expect(used('l0>p0')).toBeGreaterThan(0);
  expect(used('l0>p1')).toBeGreaterThan(0);
});

describe('PFC', () => {
  const WIDE: ScenarioFile = {
    name: 'lossless',
    duration: '1ms',
    warmup: 0,
    topology: { kind: 'star', hosts: 9, rate: '40Gbps', delay: '1us' },
    nic: { cc: 'none', timeout: 14 },
    flows: [{ kind: 'flows', from: 'h0..h7', to: 'h8' }],
  };
  const buffer = { totalBytes: 4_194_304, losslessAlpha: 0.125 };

  test.each([
    ['0', [0], {}],
    ['3, to which DSCP 0 goes', [3], { classification: { dscpToPriority: { 0: 3 } } }],
  ])('loses nothing of priority %s: hosts pause what the switch sorts there', async (_, priorities, more) => {
    const { summary } = await run({ ...WIDE, switch: { pfc: { priorities }, buffer, ...more } });
    expect(summary.droppedPackets).toBe(0);
    expect(summary.retransmittedPackets).toBe(0);
    expect(summary.goodputBps).toBeGreaterThan(30e9);
  });

  test('of another priority than that of the traffic loses packets', async () => {
    const { summary } = await run({ ...WIDE, switch: { pfc: { priorities: [3] }, buffer } });
    expect(summary.droppedPackets).toBeGreaterThan(1000);
  });
});
