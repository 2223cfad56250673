/** Files around a simulated run: captures that our own commands read, topologies and flows of other simulators. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from './run-in-process.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rocev2-sim-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SHORT = ['--set', 'duration=100us', '--set', 'warmup=0', '--set', 'assertions=[]'];

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
    expect(await hash('--pcap', join(folder, 'h0.pcapng'), '--at', 'h0')).toBe(await hash());
  });

  it('of a host that is not there is refused', async () => {
    const refused = await run(['sim', 'run', 'dcqcn-n2-4us', '--pcap', join(folder, 'x.pcapng'), '--at', 'h9']);
    expect(refused.exitCode).not.toBe(0);
    expect(refused.stderr).toContain("'h9' is not there");
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
