import { describe, expect, it } from 'vitest';
import { measuredLivelock } from '../../src/commands/livelock/measured-run.js';
import type { LivelockRun } from '../../src/commands/livelock/scheme-comparison.js';
import {
  bySeed,
  csvOf,
  estimate,
  isUnaffectedBySeed,
  MEASURE_NAMES,
  type MeasuredRun,
  measuredRun,
} from '../../src/commands/sim/sweep/measures.js';
import { sweepChart } from '../../src/commands/sim/sweep/sweep-chart.js';
import { runScenario } from '../../src/sim/scenario/run-scenario.js';
import { parseScenario } from '../../src/sim/scenario/schema.js';

/** The run of `point`, whose goodput is its only number. */
function runOf(point: Readonly<Record<string, unknown>>, goodputBps: number): MeasuredRun {
  return { point, measures: { goodputBps, completionP50Ns: null } };
}

describe('estimates over seeds', () => {
  it("have the mean and the interval of Student's distribution", () => {
    const runs = [1, 2, 3, 4].map((seed) => runOf({ seed, x: 1 }, seed * 1e9));
    const [group, ...others] = bySeed(runs);
    expect(others).toEqual([]);
    // sd 1.291, of four: 3.182 x 1.291 / 2.
    expect(estimate('goodputBps', group).mean).toBe(2.5e9);
    expect(estimate('goodputBps', group).errorHalf / 1e9).toBeCloseTo(2.054, 3);
    expect(estimate('completionP50Ns', group).mean).toBeNaN();
  });

  it('are refused where the seed changes nothing', () => {
    const runs = [1, 2].flatMap((seed) => [runOf({ seed, x: 1 }, 5), runOf({ seed, x: 2 }, 5 + seed)]);
    expect(bySeed(runs).map(isUnaffectedBySeed)).toEqual([true, false]);
    expect(() => sweepChart('', runs, ['goodputBps'])).toThrow(/all seeds give the same run/);
  });
});

describe('a CSV file', () => {
  it('has a column for each axis and measure, and quotes objects', () => {
    const [head, line] = csvOf([runOf({ seed: 1, 'nic.cc': { name: 'dcqcn', gain: 1 } }, 7)]).split('\n');
    expect(head).toBe(['seed', 'nic.cc', ...MEASURE_NAMES, 'traceHash'].join(','));
    expect(line).toMatch(/^1,"{""name"":""dcqcn"",""gain"":1}",7,/);
  });
});

describe('a run of livelock', () => {
  it('has the columns of a simulated one, empty where two processes have no value', () => {
    const run = {
      op: 'write',
      scheme: 'go-back-n',
      goodputBps: 5,
      packetsDropped: 2,
      reverseDropped: 1,
      failure: null,
    };
    const [head, line] = csvOf([measuredLivelock({ window: 64 }, run as LivelockRun)]).split('\n');
    expect(head).toBe(['window', 'op', 'scheme', ...MEASURE_NAMES, 'traceHash'].join(','));
    const cells = Object.fromEntries(head.split(',').map((name, i) => [name, line.split(',')[i]]));
    expect(cells).toMatchObject({ window: '64', op: 'write', goodputBps: '5', droppedPackets: '3', failedFlows: '0' });
    expect(cells['queueMeanBytes']).toBe('');
  });
});

describe('a chart', () => {
  const runs = ['4us', '1us', '16us'].flatMap((delay, i) =>
    ['none', 'dcqcn'].flatMap((cc) => [1, 2].map((seed) => runOf({ delay, cc, seed }, 1e9 * (10 * i + seed)))),
  );

  it('orders quantities by their value, and has a line and error bars for each combination of the others', () => {
    const svg = sweepChart('title', runs, ['goodputBps']);
    expect(svg).toContain('>delay (us)<');
    expect(svg).toContain('>goodput (Gb/s)<');
    expect(svg.match(/<polyline/g)).toHaveLength(2);
    expect(svg.match(/<circle/g)).toHaveLength(6);
    const [points] = [.../points="([^"]*)"/.exec(svg)!].slice(1);
    const ys = points.split(' ').map((point) => Number(point.split(',')[1]));
    // 1us is the second value with 10 Gb/s, 4us the first one with 0.
    expect(ys[0]).toBeLessThan(ys[1]);
    expect(ys[2]).toBeLessThan(ys[0]);
  });

  it('has no point where a measure has no value', () => {
    const points = [runOf({ x: 1 }, 1), runOf({ x: 2 }, 2)];
    expect(sweepChart('title', points, ['goodputBps']).match(/<circle/g)).toHaveLength(2);
    expect(sweepChart('title', points, ['completionP50Ns'])).not.toMatch(/<circle|NaN/);
  });

  it('has names on the x axis where values are not numbers', () => {
    expect(sweepChart('title', [runOf({ cc: 'none' }, 1), runOf({ cc: 'dcqcn' }, 2)], ['goodputBps'])).toContain(
      '>none<',
    );
  });
});

describe('jitter', () => {
  const scenario = (fields: object) =>
    parseScenario({
      name: 'regular',
      duration: '100us',
      topology: { kind: 'star', hosts: 3 },
      flows: [{ kind: 'flows', from: 'h0..h1', to: 'h2' }],
      ...fields,
    });

  it('makes every seed another run; without it seeds change no number here', async () => {
    const group = async (fields: object) => {
      const runs = await Promise.all(
        [1, 2].map(async (seed) =>
          measuredRun({ point: { seed }, result: await runScenario(scenario({ seed, ...fields })) }),
        ),
      );
      return isUnaffectedBySeed(bySeed(runs)[0]);
    };
    expect(await group({})).toBe(true);
    expect(await group({ jitter: '10us' })).toBe(false);
  });
});
