/** `rocev2 conform run HOST`: plays a peer against one target, case by case. */

import { RULES, ruleOf } from '../../audit/catalogue.js';
import { CASES } from '../../conform/cases.js';
import type { TestCase } from '../../conform/step.js';
import { type CaseResult, type CaseVerdict, type TargetFacts, Tester } from '../../conform/tester.js';
import { TestWire } from '../../conform/wire.js';
import { batchedUdpAvailable } from '../../dgram-ext/batched-udp-port.js';
import { openPort } from '../../driver/open-port.js';
import { SYSTEM_CLOCK } from '../../driver/system-clock.js';
import { systemRandom } from '../../driver/system-random.js';
import { IpAddress } from '../../packet/address.js';
import { counted } from '../audit/audit-lines.js';
import {
  CommandFailure,
  EXIT_FAILED,
  EXIT_INTERRUPTED,
  EXIT_NO_CONNECTION,
  EXIT_VERIFICATION_FAILED,
} from '../exit.js';
import { type FrameFlags, frameDeviceOptions } from '../frame-wire.js';
import { localAddressTowards } from '../local-address.js';
import type { Output } from '../output.js';
import { checkWritable, writeOutputFile } from '../output-file.js';
import { resolveHost } from '../resolve-host.js';
import { junitReport } from './junit.js';

/** A port of RDMA_PS_TCP on which nobody listens: tcpmux, which no service of RDMA uses. */
const IDLE_PORT = 1;
const VERDICT_WIDTH = 16;

/** Options of `rocev2 conform run`. */
export interface ConformRunOptions extends FrameFlags {
  /** rdma_cm port of the service. */
  readonly port: number;
  /** The service is not asked whether it wants to be tested. */
  readonly anyService?: true;
  /** Cases to run; undefined: all. */
  readonly only?: readonly TestCase[];
  /** Path MTU in bytes. */
  readonly mtu: number;
  /** How long an answer may take, in nanoseconds. */
  readonly timeout: number;
  /** How long nothing may come where nothing has to, in nanoseconds. */
  readonly quiet: number;
  /** Broken rules of level should count, too. */
  readonly strict?: true;
  /** Address of this side. */
  readonly bind?: IpAddress;
  /** Where the capture goes. */
  readonly pcap?: string;
  /** Where the results go as JUnit XML. */
  readonly junit?: string;
}

/** The fields of `conform run --json`. */
export interface ConformRunResult extends TargetFacts {
  /** The target, as named on the command line. */
  readonly target: string;
  /** Address of the target. */
  readonly remote: string;
  /** Address of the tester. */
  readonly local: string;
  /** rdma_cm port. */
  readonly port: number;
  /** Path MTU of the connections, in bytes. */
  readonly mtu: number;
  /** How many cases have which verdict. */
  readonly counts: Readonly<Record<CaseVerdict, number>>;
  /** Packets that the tester sent. */
  readonly packetsSent: number;
  /** Packets of the target that were malformed or had a wrong ICRC. They were ignored. */
  readonly unsoundAnswers: number;
  /** In the order in which they were run. */
  readonly cases: readonly CaseResult[];
}

/** Runs the cases and prints what came of them. */
export async function runConform(host: string, options: ConformRunOptions, output: Output): Promise<void> {
  const { port, mtu, timeout, quiet, pcap, junit, only = CASES } = options;
  for (const file of [pcap, junit]) await checkWritable(file);
  const remote = IpAddress.parse(await resolveHost(host));
  const frame = await frameDeviceOptions(options);
  const local = options.bind ?? (await localAddressTowards(remote));
  const isFrame = frame.frame !== undefined;
  const opened = await openPort({
    address: local.text,
    io: isFrame ? 'dgram' : 'auto',
    ...frame,
    ...(pcap !== undefined && { pcap }),
  });
  try {
    await opened.resolve(remote);
    const setsTrafficClass = isFrame || batchedUdpAvailable() === undefined;
    const wire = new TestWire(opened.port, SYSTEM_CLOCK, remote, setsTrafficClass);
    const limits = { answerMs: timeout / 1e6, quietMs: quiet / 1e6 };
    const tester = new Tester(wire, systemRandom(), { port, idlePort: IDLE_PORT, mtu, ...limits });
    const facts = await meet(tester, options, `${remote} port ${port}`);
    output.line(`${remote} port ${port}, tested from ${local}, path MTU ${mtu}`);
    const cases = await runAll(tester, only, output);
    const counts = countVerdicts(cases);
    print(cases, counts, wire, output);
    output.document('conform-run', {
      target: host,
      remote: remote.text,
      local: local.text,
      port,
      mtu,
      ...facts,
      counts,
      packetsSent: wire.sent,
      unsoundAnswers: wire.unsound,
      cases,
    });
    if (junit !== undefined) await writeOutputFile(junit, junitReport(cases, `${remote} port ${port}`));
    if (output.io.interrupted.aborted) throw new CommandFailure(EXIT_INTERRUPTED);
    failIfBroken(cases, options.strict === true);
  } finally {
    await opened.close();
  }
}

/** Whether the target is one, and wants to be tested. */
async function meet(tester: Tester, { anyService }: ConformRunOptions, who: string): Promise<TargetFacts> {
  const facts = await tester.meet();
  if (typeof facts === 'string') {
    throw new CommandFailure(
      EXIT_NO_CONNECTION,
      `${who}: ${facts}; start rocev2 conform serve there, or name the port of a service by --port`,
    );
  }
  if (facts.isTarget || anyService === true) return facts;
  throw new CommandFailure(
    EXIT_FAILED,
    `${who} is no rocev2 conform serve; --any-service tests it all the same, with malformed packets among others`,
  );
}

async function runAll(tester: Tester, cases: readonly TestCase[], output: Output): Promise<CaseResult[]> {
  const results: CaseResult[] = [];
  for (const testCase of cases) {
    if (output.io.interrupted.aborted) break;
    const result = await tester.run(testCase);
    results.push(result);
    output.line(
      `  ${colored(output, result.verdict)}${result.rules.join(',').padEnd(9)}${result.name}: ${result.about}`,
    );
    if (result.text !== null) output.line(`${' '.repeat(VERDICT_WIDTH + 11)}${result.text}`);
  }
  return results;
}

function countVerdicts(cases: readonly CaseResult[]): Record<CaseVerdict, number> {
  const counts: Record<CaseVerdict, number> = { passed: 0, failed: 0, 'cannot tell': 0, 'not applicable': 0 };
  for (const { verdict } of cases) counts[verdict]++;
  return counts;
}

function print(cases: readonly CaseResult[], counts: Record<CaseVerdict, number>, wire: TestWire, output: Output) {
  const rules = new Set(cases.filter(({ verdict }) => verdict === 'passed').flatMap((result) => result.rules));
  for (const { rules: broken } of cases.filter(({ verdict }) => verdict === 'failed')) rules.delete(broken[0]);
  output.line();
  const words = Object.entries(counts).map(([verdict, count]) => `${count} ${verdict}`);
  output.line(`${counted(cases.length, 'case')}: ${words.join(', ')}.`);
  output.line(`${rules.size} of ${RULES.length} rules kept; ${counted(wire.sent, 'packet')} sent.`);
  if (wire.unsound > 0) {
    output.line(
      `${counted(wire.unsound, 'answer')} ignored: malformed, or with a wrong ICRC (rocev2 audit of --pcap).`,
    );
  }
}

function colored({ colors }: Output, verdict: CaseVerdict): string {
  const text = verdict.padEnd(VERDICT_WIDTH);
  const color = {
    passed: colors.green,
    failed: colors.red,
    'cannot tell': colors.yellow,
    'not applicable': colors.dim,
  };
  return color[verdict](text);
}

function failIfBroken(cases: readonly CaseResult[], isStrict: boolean): void {
  const counting = cases.filter(
    ({ verdict, severity }) => verdict === 'failed' && (severity === 'must' || (isStrict && severity === 'should')),
  );
  if (counting.length === 0) return;
  const rules = [...new Set(counting.map(({ rules: [first] }) => first))];
  const titles = rules.length === 1 ? ` (${ruleOf(rules[0])!.title})` : '';
  throw new CommandFailure(
    EXIT_VERIFICATION_FAILED,
    `${counted(rules.length, 'rule')} broken: ${rules.join(', ')}${titles}`,
  );
}
