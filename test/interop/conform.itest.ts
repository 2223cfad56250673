/**
 * `rocev2 conform` against Linux Soft-RoCE, by the agent, perftest and a service of RDMA CM, and against ourselves with both engines. The peers
 * take turns in the rounds of continuous integration; `npm run conform:table` has all, and a newer kernel, and writes packages/inspect/test/conform/results.json.
 */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, expect, vi } from 'vitest';
import { type ConformRunResult, readResult } from '../../packages/inspect/src/commands/conform/result.js';
import { NONSTANDARD_SCHEMES, SCHEME_DEVIATIONS } from '../../packages/inspect/test/conform/nonstandard-schemes.js';
import { cell } from './support/cell.js';
import { conformanceResults } from './support/conformance-results.js';
import { describeWithRig } from './support/describe-on-rig.js';
import type { Rig } from './support/rig.js';
import { saysOnStderr, startRocev2 } from './support/rocev2.js';
import { RXE_DEVIATIONS, RXE_SOMETIMES } from './support/rxe-deviations.js';

const AGENT_PORT = 18_527;
const RPING_PORT = 7174;
const PERFTEST_PORT = 18_515;
const FAMILIES = [4, 6] as const;
const LOOPBACK = { 4: ['127.0.184.1', '127.0.184.2'], 6: ['fd77:1::1', 'fd77:1::2'] } as const;
/** A guest is emulated, and thinks slowly. */
const PATIENCE = ['--timeout', '3s', '--quiet', '150ms'];
const TABLE = process.env['CONFORM_TABLE'];

/** Of a whole run against a server of perftest. */
vi.setConfig({ testTimeout: 400_000 });

const results: ConformRunResult[] = [];

async function conform(rig: Rig, name: string, target: string, ...args: string[]): Promise<ConformRunResult> {
  const file = join(rig.directory, `${results.length}.json`);
  const command = startRocev2(rig, ['conform', 'run', target, '--name', name, '--results', file, ...args]);
  const { exitCode, stdout, stderr } = await command.wait(300_000);
  expect([0, 4], stdout + stderr).toContain(exitCode);
  const result = await readResult(file);
  results.push(result);
  return result;
}

function deviations({ cases }: ConformRunResult): string[] {
  const found = cases.filter(({ verdict }) => verdict === 'failed' || verdict === 'differs');
  return found.map(({ name }) => name).sort();
}

/** The first two numbers of the guest's kernel. */
async function kernelOf(rig: Rig): Promise<string> {
  return /^\d+\.\d+/.exec((await rig.exec('uname -r')).stdout)![0];
}

function byAgent(rig: () => Rig, family: 4 | 6): void {
  cell(
    { tool: 'rocev2-agent', role: 'client', family, what: 'conformance' },
    async () => {
      const agent = await rig().background('agent', 'rocev2-agent');
      await rig().listening(AGENT_PORT);
      const kernel = await kernelOf(rig());
      const [ours, theirs] = [rig().hostSide, rig().guests[0]].map(({ ip4, ip6 }) => (family === 4 ? ip4 : ip6));
      const name = `Soft-RoCE ${kernel}, IPv${family}`;
      const result = await conform(rig(), name, theirs, '--bind', ours, '--via', 'agent', ...PATIENCE);
      const found = deviations(result).filter((one) => !RXE_SOMETIMES.includes(one));
      expect(found).toEqual([...RXE_DEVIATIONS[kernel]].sort());
      await agent.kill();
    },
    { group: 'conformance' },
  );
}

function ourselves(rig: () => Rig, family: 4 | 6, engine: string, scheme?: (typeof NONSTANDARD_SCHEMES)[number]): void {
  const how = scheme === undefined ? engine : `${engine}, ${scheme}`;
  const facts = { tool: 'rocev2 conform serve', role: 'both', family, what: `conformance, ${how}` } as const;
  const run = async () => {
    const [target, tester] = LOOPBACK[family];
    if (family === 6) {
      for (const address of LOOPBACK[6]) {
        await rig()
          .host(['ip', '-6', 'addr', 'replace', `${address}/128`, 'dev', 'lo', 'nodad'])
          .wait();
      }
    }
    const recovery = scheme === undefined ? [] : ['--recovery', scheme];
    const server = startRocev2(rig(), ['conform', 'serve', '--bind', target, '--engine', engine, ...recovery]);
    await saysOnStderr(server, 'listening');
    const result = await conform(rig(), `rocev2, ${how}, IPv${family}`, target, '--bind', tester);
    expect(deviations(result)).toEqual(scheme === undefined ? [] : [...SCHEME_DEVIATIONS[scheme]].sort());
    await server.stop('SIGINT');
  };
  cell(facts, run, { group: 'conformance' });
}

await describeWithRig('rocev2 conform', { isAudited: false }, (rig) => {
  for (const family of FAMILIES) {
    for (const engine of ['inline', 'worker']) ourselves(rig, family, engine);
    byAgent(rig, family);
  }
  // Virtual time shows the same (packages/inspect/test/conform/combinations.long.ts).
  if (TABLE !== undefined) for (const scheme of NONSTANDARD_SCHEMES) ourselves(rig, 4, 'inline', scheme);

  cell(
    { tool: 'rping -s -P', role: 'client', family: 4, what: 'conformance' },
    async () => {
      const { ip4 } = rig().guests[0];
      // Its threads race for the state of the listener, and it ends now and then.
      const server = await rig().background('rping', `while true; do rping -s -P -a ${ip4}; done`);
      await rig().listening(RPING_PORT);
      const service = ['--port', `${RPING_PORT}`, '--any-service', '--bind', rig().hostSide.ip4];
      const result = await conform(rig(), `Soft-RoCE ${await kernelOf(rig())}, rping`, ip4, ...service, ...PATIENCE);
      expect(deviations(result)).toEqual([]);
      await server.kill();
    },
    { group: 'conformance' },
  );

  cell(
    { tool: 'ib_write_bw', role: 'client', family: 4, what: 'conformance' },
    async () => {
      const { ip4 } = rig().guests[0];
      const loop = await rig().background('perftest', 'while true; do ib_write_bw -x 1 -m 256; done');
      await rig().listening(PERFTEST_PORT);
      const way = ['--via', 'perftest', '--any-service', '--bind', rig().hostSide.ip4];
      // Each server of perftest sleeps a second before it speaks.
      const which = TABLE === undefined ? ['--only', 'length'] : [];
      const name = `Soft-RoCE ${await kernelOf(rig())}, ib_write_bw`;
      const result = await conform(rig(), name, ip4, ...way, ...which, ...PATIENCE);
      expect(deviations(result)).toEqual(['length/write-2gib']);
      await loop.kill();
    },
    { group: 'conformance' },
  );
});

if (TABLE !== undefined) {
  await describeWithRig('rocev2 conform, a newer kernel', { kernel: 'backports', isAudited: false }, (rig) => {
    for (const family of FAMILIES) byAgent(rig, family);
  });

  afterAll(() => writeFileSync(new URL(`../../${TABLE}`, import.meta.url), conformanceResults(results)));
}
