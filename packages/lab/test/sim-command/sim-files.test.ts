/** Files around a simulated run: captures that our own commands read, topologies and flows of other simulators. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../../../cli/test/run-in-process.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rocev2-sim-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SHORT = ['--set', 'duration=100us', '--set', 'warmup=0', '--set', 'assertions=[]'];

describe('a scenario that is shown', () => {
  it('is a file that runs as the scenario does, with its fields overridden', async () => {
    const file = join(folder, 'shown.json');
    const shown = await run(['sim', 'show', 'dcqcn-n2-4us', ...SHORT]);
    expect(shown.exitCode, shown.stderr).toBe(0);
    writeFileSync(file, shown.stdout);
    const hash = async (...args: string[]) =>
      JSON.parse((await run(['sim', 'run', ...args, '--json'])).stdout).traceHash as string;
    expect(await hash(file)).toBe(await hash('dcqcn-n2-4us', ...SHORT));
    expect(JSON.parse((await run(['sim', 'show', 'dcqcn-n2-4us', '--json'])).stdout).scenario.duration).not.toBe(
      '100us',
    );
  });
});

describe('a capture of a run', () => {
  it('has the frames of one host, which decode reads and audit finds in order', async () => {
    const pcap = join(folder, 'h2.pcapng');
    const made = await run(['sim', 'run', 'dcqcn-n2-4us', ...SHORT, '--pcap', pcap]);
    expect(made.exitCode, made.stderr).toBe(0);
    expect(made.stderr).toContain(`wrote ${pcap}`);
    const decoded = await run(['decode', pcap, '--json']);
    expect(decoded.stdout).toContain('10.0.0.2');
    const audited = await run(['audit', pcap]);
    expect(audited.exitCode, audited.stdout).toBe(0);
    expect(audited.stdout).toContain('2 connections with both directions');
  });

  it('changes nothing in the run', async () => {
    const hash = async (...more: string[]) => {
      const { stdout } = await run(['sim', 'run', 'dcqcn-n2-4us', ...SHORT, '--json', ...more]);
      return JSON.parse(stdout).traceHash;
    };
    const watched = ['--pcap', join(folder, 'a.pcapng'), '--trace', join(folder, 'a.ndjson'), '--at', 'h0'];
    expect(await hash(...watched, '--series', join(folder, 'a.csv'))).toBe(await hash());
  });

  it('of a host that is not there is refused', async () => {
    const refused = await run(['sim', 'run', 'dcqcn-n2-4us', '--pcap', join(folder, 'x.pcapng'), '--at', 'h9']);
    expect(refused.exitCode).not.toBe(0);
    expect(refused.stderr).toContain("'h9' is not there");
  });
});

describe('a trace of a run', () => {
  it('has what the NIC of one host sent, received and did, which decode reads', async () => {
    const file = join(folder, 'h0.ndjson');
    const made = await run(['sim', 'run', 'dcqcn-n2-4us', ...SHORT, '--trace', file, '--at', 'h0']);
    expect(made.exitCode, made.stderr).toBe(0);
    const [head, ...events] = readFileSync(file, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(head.trace.vantage_point.name).toBe('simulated host h0');
    const names = new Set(events.map(({ name }) => name));
    for (const name of ['packet_sent', 'packet_received', 'cnp_received', 'rate_updated']) {
      expect(names).toContain(`roce:${name}`);
    }
    const times = events.map(({ time }) => time as number);
    expect(times).toEqual([...times].sort((one, other) => one - other));
    expect(times.at(-1)).toBeLessThanOrEqual(0.1); // 100 us of virtual time, in ms.
    expect((await run(['decode', file])).stdout).toContain('RDMA_WRITE');
  });
});

describe('the series of a run', () => {
  const sampled = ['sim', 'run', 'dcqcn-n2-4us', ...SHORT, '--set', 'sample=10us', '--series'];

  it('has R_C, R_T and alpha of each flow, below the line rate once it is cut', async () => {
    const file = join(folder, 'rates.csv');
    expect((await run([...sampled, file])).exitCode).toBe(0);
    const [head, ...rows] = readFileSync(file, 'utf8').trimEnd().split('\n');
    expect(head).toBe('timeNs,id,from,to,sentBps,rateBps,targetRateBps,alpha,windowBytes');
    expect(rows).toHaveLength(2 * 10);
    const [timeNs, id, from, to, , rate, target, alpha, window] = rows.at(-1)!.split(',');
    expect([timeNs, id, from, to, window]).toEqual(['100000', '1', 'h1', 'h2', '']);
    expect(Number(rate)).toBeLessThan(40e9);
    expect(Number(target)).toBeGreaterThanOrEqual(Number(rate));
    expect(Number(alpha)).toBeGreaterThan(0.9);
  });

  it('has the window of a control that has one, as JSON', async () => {
    const file = join(folder, 'windows.json');
    expect((await run([...sampled, file, '--set', 'nic.cc=swift'])).exitCode).toBe(0);
    const samples: { windowBytes: number | null; alpha: number | null }[] = JSON.parse(readFileSync(file, 'utf8'));
    expect(samples).toHaveLength(2 * 10);
    for (const { windowBytes, alpha } of samples) {
      expect(windowBytes).toBeGreaterThan(0);
      expect(alpha).toBeNull();
    }
  });

  it('leaves out flows that have not begun, or have ended', async () => {
    const file = join(folder, 'short.csv');
    await run([...sampled, file, '--set', 'flows[0].bytes=64KB', '--set', 'flows[0].stagger=45us']);
    const rows = readFileSync(file, 'utf8').trimEnd().split('\n').slice(1);
    const timesOf = (flow: string) => rows.filter((row) => row.split(',')[1] === flow).map((row) => parseInt(row, 10));
    expect(timesOf('0')[0]).toBe(10_000);
    expect(timesOf('0').at(-1)).toBeLessThan(40_000);
    expect(timesOf('1')[0]).toBe(50_000);
  });
});

describe('files of other simulators', () => {
  it('take the place of topology and flows', async () => {
    const [topology, flows] = [join(folder, 'topology.txt'), join(folder, 'flow.txt')];
    writeFileSync(topology, '4 1 3\n0\n0 1 10Gbps 0.001ms 0\n0 2 10Gbps 0.001ms 0\n0 3 10Gbps 0.001ms 0\n');
    writeFileSync(flows, '2\n1 3 3 100 50000 2\n2 3 3 100 50000 2.00001\n\nFirst line: # of flows\n');
    const args = ['sim', 'run', 'dcqcn-n2-4us', ...SHORT, '--topology', topology, '--flows', flows, '--json'];
    const { stdout, stderr } = await run(args);
    const result = JSON.parse(stdout || stderr);
    expect(result.flows).toMatchObject([
      { from: 'h1', to: 'h3', startNs: 0, bytes: 50_000 },
      { from: 'h2', to: 'h3', startNs: 10_000, bytes: 50_000 },
    ]);
    expect(result.slowdowns.at(-1).p50).toBeGreaterThan(1.5);
  });
});
