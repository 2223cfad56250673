/** `rocev2 wire` in its three ways, with programs of ours at both ends. */

import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { run } from '../../packages/cli/test/run-in-process.js';
import { auditOf, expectClean } from '../../packages/inspect/test/audit/capture-file.js';
import type { WireResult } from '../../packages/lab/src/commands/wire-command.js';
import { isBuilt, rocev2Starter } from './executable.js';
import { documentOf } from './watched.js';

const FIXTURE = fileURLToPath(new URL('./fixtures/three-namespaces.sh', import.meta.url));
const start = rocev2Starter();

/** A user that may make network namespaces with links between them, and the tools for it. */
const hasNamespaces =
  spawnSync('unshare', ['-rn', 'bash', '-c', 'ip link add va type veth peer name wa && nsenter --version']).status ===
  0;
const LIMIT_MS = 120_000;
/**
 * The programs wait a second for an acknowledgement: beside other work on few cores the wire takes longer than the default of 67 ms for a
 * window, whose packets would be sent again into a queue that grows until the retries run out.
 */
const BW = 'node packages/cli/bin/rocev2.js bw';
const PATIENCE = '--timeout 18';

interface Talk {
  readonly operation: string;
  readonly rules?: string;
  readonly mtuBytes?: number;
  /** Options of both programs. */
  readonly options?: string;
}

/** Forty messages of 64 KiB through the wire; what the client said, and the wire. */
function talk({ operation, rules, mtuBytes = 1500, options = '--io mmsg' }: Talk): { said: string; wire: WireResult } {
  const both = `${BW} ${operation} ${PATIENCE} ${options} --bind`;
  const { status, stdout, stderr } = spawnSync(
    'unshare',
    [
      ...['-rn', 'bash', FIXTURE, `${mtuBytes}`],
      ...[`${both} 10.9.0.2`, 'waiting for', `${both} 10.9.0.1 10.9.0.2 -n 40`],
      ...['--audit', ...(rules === undefined ? [] : ['--faults', rules])],
    ],
    { encoding: 'utf8', timeout: LIMIT_MS },
  );
  expect(status, stderr).toBe(0);
  return { said: stderr, wire: JSON.parse(stdout) };
}

const broken = ({ audit }: WireResult) => audit!.findings.filter(({ verdict }) => verdict === 'violation');
const measured = ({ audit }: WireResult, name: string) =>
  audit!.measures.find((measure) => measure.name === name)?.count ?? 0;

describe.runIf(isBuilt && hasNamespaces)('a wire of two network interfaces', { timeout: LIMIT_MS }, () => {
  // Over the second one the kernel hands over trains of datagrams in one piece: READ requests are shorter than their headers.
  it.each([
    ['write', '--io dgram'],
    ['read', '--io mmsg'],
  ])('passes everything on as it is: %s, %s', (operation, options) => {
    const { said, wire } = talk({ operation, options });
    expect(said).toMatch(/data verified/);
    const [a, b] = wire.sides;
    expect(a.link).toBe('wa');
    expect(b.counters.tx_packets).toBe(a.counters.rx_packets);
    expect(a.counters.tx_packets).toBe(b.counters.rx_packets);
    expect(broken(wire)).toEqual([]);
    expect(wire.audit!.packets.unsound).toBe(0);
    expect(wire.audit!.packets.roce).toBeGreaterThan(2 * 40 * 64);
  });

  it('loses, delays and rewrites what the rules say, and the audit names it', () => {
    const { said, wire } = talk({
      operation: 'write',
      options: '--io mmsg --recovery go-back-n',
      rules: 'a>b:every=256;a>b:rpsn=300,delay=3ms:once;a>b:rpsn=641,rewrite=solicited,1:once',
    });
    expect(said).toMatch(/data verified/);
    expect(wire.rules.every(({ hits }) => hits > 0)).toBe(true);
    const { counters } = wire.sides[1];
    expect(counters.tx_dropped_fault).toBe(wire.rules[0].hits);
    expect(counters).toMatchObject({ faults_delayed: 1, faults_rewritten: 1 });
    expect(measured(wire, 'NAK reaction')).toBeGreaterThan(0);
    expect(measured(wire, 'retransmission')).toBeGreaterThan(0);
    expect(new Set(broken(wire).map(({ rule }) => rule))).toEqual(new Set([31]));
  });
});

describe.runIf(isBuilt)('rocev2 wire', { timeout: LIMIT_MS }, () => {
  it('relays: each side believes that it is the other one', async () => {
    const wire = start(
      'wire',
      '--relay',
      '127.61.0.2',
      '--to',
      '127.61.0.3',
      '--audit',
      '--json',
      '--faults',
      'a>b:rpsn=2:once',
    );
    await wire.writes('stderr', /Ctrl-C ends it/);
    const server = start('rping', '-s', '-V', '-a', '127.61.0.3');
    await server.writes('stderr', /listening/);
    const client = start('rping', '-c', '-V', '-a', '127.61.0.2', '--bind', '127.61.0.1', '-C', '20', '--json');
    expect(await client.ended(), client.stderr).toBe(0);
    wire.kill('SIGINT');
    expect(await wire.ended(), wire.stderr).toBe(0);
    const { sides, rules, audit }: WireResult = JSON.parse(wire.stdout);
    expect(sides.map(({ link }) => link)).toEqual(['127.61.0.2', '127.61.0.3']);
    expect(rules).toEqual([{ rule: 'a>b:rpsn=2:once', hits: 1 }]);
    expect(audit!.packets.unsound).toBe(0);
    expect(audit!.connections).toBe(2); // seen at either side
    expect(audit!.findings.filter(({ verdict }) => verdict === 'violation')).toEqual([]);
  });

  it('joins two links of datagrams, captures both sides, and lets itself be watched', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'rocev2-wire-'));
    const file = join(directory, 'both.pcapng');
    const wire = start('wire', '127.0.0.1:0', '127.0.0.1:0', '--pcap', file, '--estats', '--rate', '1Gbps');
    const [, a, b] = await wire.writes('stderr', /side a on (\S+:\d+), side b on (\S+:\d+)\n/);
    const server = start('rping', '-s', '-V', '-a', '198.18.61.2', '--frame', b);
    await server.writes('stderr', /listening/);
    const client = start('rping', '-c', '-V', '-a', '198.18.61.2', '--bind', '198.18.61.1', '--frame', a, '-C', '20');
    expect(await client.ended(), client.stderr).toBe(0);
    const document = await documentOf(wire);
    expect(document).toMatchObject({ kind: 'switch', ports: [{ name: 'a', local: a, rateBps: 1e9 }, { name: 'b' }] });
    wire.kill('SIGINT');
    expect(await wire.ended(), wire.stderr).toBe(0);
    expect(wire.stdout).toContain(`${file} has the frames of both sides.`);
    const report = await auditOf(file);
    expectClean(report);
    expect(report.connections).toBe(2);
    await rm(directory, { recursive: true });
  });

  it.each([
    [['wire'], 'name two ends'],
    [['wire', 'eth0'], 'name two ends'],
    [['wire', 'a/b', 'c'], "'a/b' is not an end of a wire"],
    [['wire', '127.0.0.1:0', '127.0.0.1:0', '--relay', '127.0.0.2'], 'name two ends'],
    [['wire', '--relay', '127.0.0.2', '--to', '127.0.0.2'], 'cannot represent 127.0.0.2'],
    [['wire', '--relay', '127.0.0.2', '--to', '::1'], 'addresses of one family'],
    [['wire', 'no-such-link', '127.0.0.1:0'], "there is no network interface 'no-such-link'"],
    [['wire', '127.0.0.1:0', '127.0.0.1:0', '--faults', 'lose=1'], "unknown kind 'lose'"],
  ])('refuses %j', async (args, words) => {
    const { exitCode, stderr } = await run(args);
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain(words);
  });
});
