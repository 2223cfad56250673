import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { run } from '../../../cli/test/run-in-process.js';
import { withoutHead } from '../../src/commands/report/origin.js';
import { between, within } from './closeness.js';

async function json(...args: string[]) {
  const { exitCode, stdout, stderr } = await run(['fluid', ...args, '--json']);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  return JSON.parse(stdout);
}

describe('rocev2 fluid --json', () => {
  it('prints the whole document for DCQCN', async () => {
    const document = await json('dcqcn', '--flows', '10', '--delay', '85us');
    expect(Object.keys(withoutHead(document) as object)).toEqual([
      'model',
      'flows',
      'delayNs',
      'fixedPoint',
      'phaseMarginDegrees',
      'criticalDelayNs',
      'trace',
    ]);
    expect(document).toMatchObject({ model: 'dcqcn', flows: 10, delayNs: 85_000 });
    const { fixedPoint, phaseMarginDegrees, criticalDelayNs, trace } = document;
    expect(fixedPoint.markProbability).toSatisfy(within(6.032e-3, 0.005));
    expect(fixedPoint.queueBytes).toSatisfy(within(125_300, 0.005));
    expect(fixedPoint.rateBps).toBe(4e9);
    expect(fixedPoint.targetRateBps).toSatisfy(within(4.103e9, 0.005));
    expect(fixedPoint.alpha).toSatisfy(within(0.1533, 0.005));
    expect(phaseMarginDegrees.exact).toSatisfy(between(-3.4, -3.0));
    expect(phaseMarginDegrees.authors).toSatisfy(between(-14.6, -14));
    expect(criticalDelayNs).toSatisfy(between(62_000, 64_000));
    expect(trace.rateBps).toHaveLength(10);
    for (const series of [trace.queueBytes, ...trace.rateBps]) expect(series).toHaveLength(trace.timeNs.length);
    expect(trace.timeNs.at(-1)).toBe(150e6);
  });

  it('has null for what a model does not have', async () => {
    const timely = await json('timely', '--rates', '7Gbps,3Gbps');
    expect(timely.fixedPoint).toBeNull();
    expect(timely.phaseMarginDegrees).toEqual({ authors: null, exact: null });
    expect(timely.criticalDelayNs).toBeNull();
    const patched = await json('patched-timely', '--flows', '10');
    expect(patched.fixedPoint).toEqual({
      markProbability: null,
      queueBytes: expect.closeTo(140_625, 6),
      rateBps: 1e9,
      targetRateBps: null,
      alpha: null,
    });
    const offRamp = await json('dcqcn', '--flows', '64', '--preset', 'sigcomm15');
    expect(offRamp.fixedPoint.queueBytes).toBeNull();
    // The published margins ignore that the ramp ends.
    expect(offRamp.phaseMarginDegrees.authors).toSatisfy(between(42.3, 42.5));
    expect(offRamp.phaseMarginDegrees.exact).toSatisfy(between(23.9, 24.1));
    const hosts = await json('patched-timely', '--pi', '--rates', '7Gbps,3Gbps', '--duration', '30ms');
    expect(hosts.fixedPoint.rateBps).toBeNull();
  });

  it('takes link rate, parameters with their units, gains and starts from the command line', async () => {
    const fast = await json('dcqcn', '--rate', '100Gbps', '--set', 'additiveIncreaseBps=10Mbps');
    expect(fast.fixedPoint.rateBps).toBe(50e9);
    const pi = await json('dcqcn', '--pi', '--set', 'referenceBytes=100KB', '--duration', '30ms');
    expect(pi.fixedPoint.queueBytes).toBe(100_000);
    const late = await json('dcqcn', '--starts', '0ms,10ms', '--duration', '30ms');
    const firstSent = late.trace.rateBps[1].findIndex((rate: number) => rate > 0);
    expect(late.trace.timeNs[firstSent]).toSatisfy(within(10e6, 0.01));
  });

  it('repeats itself exactly for a seed of the jitter, and differs for another', async () => {
    const jittered = (seed: string) =>
      json('patched-timely', '--jitter', '100us', '--seed', seed, '--duration', '30ms');
    const [first, again, other] = [await jittered('1'), await jittered('1'), await jittered('2')];
    expect(withoutHead(again)).toEqual(withoutHead(first));
    expect(other.trace).not.toEqual(first.trace);
  });
});

describe('rocev2 fluid for people', () => {
  it('shows theory, a verdict, and the swing at the delays of the figures', async () => {
    const { exitCode, stdout, stderr } = await run(['fluid', 'dcqcn', '--flows', '10', '--delay', '85us']);
    expect(exitCode).toBe(0);
    expect(stderr).toBe('');
    expect(stdout).toContain('DCQCN: 10 flows on 40.0 Gb/s, feedback delay 85.0 us');
    expect(stdout).toMatch(/queue at rest +125\.3 KB/);
    expect(stdout).toMatch(/verdict +unstable/);
    expect(stdout).toMatch(/^>.* 85\.0 us .* 276\.3 .* swings$/m);
    expect(stdout).toMatch(/^ .* 4\.00 us .* settles$/m);
    for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(120);
  });

  it.each([
    [['timely'], /verdict +no fixed point/],
    [['dcqcn', '--flows', '64', '--preset', 'sigcomm15'], /verdict +no fixed point: RED/],
    [['dcqcn', '--flows', '10', '--preset', 'sigcomm15'], /fair within +35\.9 ms/],
    [['dcqcn', '--flows', '1'], /verdict +a single flow is limited to the line rate/],
    [['patched-timely', '--jitter', '100us'], /^>.* 72\.\d % +empty$/m],
    [['patched-timely', '--flows', '20'], /critical delay +none: unstable even without delay/],
    [['patched-timely', '--pi', '--duration', '30ms'], /verdict +no single fixed point/],
    [['patched-timely', '--pi', 'switch', '--duration', '30ms'], /PI at the switch/],
  ])('says of %j what there is to say', async (args, expected) => {
    const { exitCode, stdout } = await run(['fluid', ...args]);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(expected);
  });

  it.each([
    [['reno'], /dcqcn, timely, patched-timely/],
    [['dcqcn', '--set', 'kmax=1'], /no parameter 'kmax'.*kmaxBytes/],
    [['dcqcn', '--set', 'kmaxBytes=many'], /not a size/],
    [['dcqcn', '--set', 'gain'], /not a number for gain/],
    [['dcqcn', '--set', 'pmax=2'], /pmax/],
    [['dcqcn', '--flows', '3', '--rates', '1Gbps'], /disagree/],
    [['dcqcn', '--flows', '10001'], /at most 10000/],
    [['dcqcn', '--pi', 'host'], /--pi switch/],
    [['dcqcn', '--delay', '1s'], /at most/],
    [['timely', '--pi'], /--pi is only for/],
    [['timely', '--preset', 'sigcomm15'], /--preset is only for dcqcn/],
    [['timely', '--marking', 'enqueue'], /--marking is only for dcqcn/],
  ])('refuses %j with exit code 2 and a reason', async (args, expected) => {
    const { exitCode, stdout, stderr } = await run(['fluid', ...args]);
    expect(exitCode).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toMatch(expected);
  });

  it('writes an SVG chart of queue and rates', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'rocev2-fluid-'));
    try {
      const path = join(folder, 'chart.svg');
      const { exitCode, stderr } = await run(['fluid', 'timely', '--rates', '7Gbps,3Gbps', '--plot', path]);
      expect(exitCode).toBe(0);
      expect(stderr).toContain(path);
      const svg = await readFile(path, 'utf8');
      for (const text of ['Queue (KB)', 'Rate (Gb/s)', 'Time (ms)', 'flow 1', 'flow 2', 'prefers-color-scheme:dark']) {
        expect(svg).toContain(text);
      }
      expect(svg).not.toMatch(/NaN|Infinity|undefined/);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
