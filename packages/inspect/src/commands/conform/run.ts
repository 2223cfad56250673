import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  CommandFailure,
  counted,
  defineDocument,
  EXIT_FAILED,
  EXIT_NO_CONNECTION,
  EXIT_VERIFICATION_FAILED,
  type FrameFlags,
  frameDeviceOptions,
  localAddressTowards,
  type Output,
  resolveHost,
} from '@rocev2/command';
import { CapturePort, LINKTYPE_RAW, PcapngFile } from 'rocev2/internal/capture';
import { batchedUdpAvailable } from 'rocev2/internal/dgram-ext';
import { openPort, SYSTEM_CLOCK, wallClockNs } from 'rocev2/internal/driver';
import { IpAddress } from 'rocev2/internal/packet';
import { RULES, ruleOf } from '../../audit/catalogue.js';
import { CASES } from '../../conform/cases.js';
import { Evidence } from '../../conform/evidence.js';
import type { Via } from '../../conform/peer.js';
import type { TestCase } from '../../conform/step.js';
import { type CaseResult, type CaseVerdict, type TargetFacts, Tester } from '../../conform/tester.js';
import { TestWire } from '../../conform/wire.js';
import { type ConformOutputs, checkOutputs, writeOutputs } from './outputs.js';
import { type ConformRunResult, countVerdicts } from './result.js';
import { defaultPort, openConnector } from './via.js';

const CONFORM_RUN_DOCUMENT = defineDocument<ConformRunResult>('conform-run');

const VERDICT_WIDTH = 16;

export interface ConformRunOptions extends FrameFlags, ConformOutputs {
  readonly via: Via;
  readonly port?: number;
  readonly agent?: string;
  readonly anyService?: true;
  readonly only?: readonly TestCase[];
  /** Path MTU in bytes. */
  readonly mtu: number;
  /** How long an answer may take, in nanoseconds. */
  readonly timeout: number;
  /** How long nothing may come where nothing has to, in nanoseconds. */
  readonly quiet: number;
  readonly name?: string;
  readonly strict?: true;
  readonly bind?: IpAddress;
}

export async function runConform(host: string, options: ConformRunOptions, output: Output): Promise<void> {
  const { via, mtu, only = CASES, name = host, port = defaultPort(via) } = options;
  await checkOutputs(options);
  await using capture = await openCapture(options);
  const remote = IpAddress.parse(await resolveHost(host));
  const frame = await frameDeviceOptions(options);
  const local = options.bind ?? (await localAddressTowards(remote));
  const isFrame = frame.frame !== undefined;
  const opened = await openPort({ address: local.text, io: isFrame ? 'dgram' : 'auto', ...frame });
  try {
    await opened.resolve(remote);
    const evidence = new Evidence(capture.file);
    const captured = new CapturePort(opened.port, evidence, 0, wallClockNs());
    const wire = new TestWire(captured, SYSTEM_CLOCK, remote, isFrame || batchedUdpAvailable() === undefined);
    await using way = await openConnector(via, wire, { host: options.agent ?? remote.text, port });
    const limits = { mtu, answerMs: options.timeout / 1e6, quietMs: options.quiet / 1e6 };
    const tester = new Tester({ wire, connector: way.connector, evidence }, limits);
    const facts = await meet(tester, options, `${remote} port ${port}`);
    output.line(`${remote} port ${port}, tested from ${local}, path MTU ${mtu}`);
    const cases = await runAll(tester, only, output);
    const counts = countVerdicts(cases);
    print(cases, counts, wire, output);
    const addresses = { target: host, name, via, remote: remote.text, local: local.text, port, mtu };
    const packets = { packetsSent: wire.sent, unsoundAnswers: wire.unsound };
    const result: ConformRunResult = { ...addresses, ...facts, counts, ...packets, cases };
    output.document(CONFORM_RUN_DOCUMENT, result);
    await capture.file?.close();
    await writeOutputs(options, result, output.documentText(CONFORM_RUN_DOCUMENT, result), capture.path);
    output.throwIfInterrupted();
    failIfBroken(cases, options.strict === true);
  } finally {
    await opened.close();
  }
}

interface Capture extends AsyncDisposable {
  readonly file: PcapngFile | undefined;
  readonly path: string | undefined;
}

async function openCapture({ pcap, bundle }: ConformOutputs): Promise<Capture> {
  const isKept = pcap !== undefined || bundle === undefined;
  const folder = isKept ? undefined : await mkdtemp(join(tmpdir(), 'rocev2-conform-'));
  const path = folder === undefined ? pcap : join(folder, 'packets.pcapng');
  const interfaces = [{ name: 'tester', linkType: LINKTYPE_RAW }];
  const file = path === undefined ? undefined : await PcapngFile.create(path, interfaces);
  return {
    file,
    path,
    [Symbol.asyncDispose]: async () => {
      await file?.close();
      if (folder !== undefined) await rm(folder, { recursive: true });
    },
  };
}

async function meet(tester: Tester, { anyService, via }: ConformRunOptions, who: string): Promise<TargetFacts> {
  const facts = await tester.meet();
  if (typeof facts === 'string') {
    const what =
      via === 'agent'
        ? 'read the output of the agent'
        : 'start rocev2 conform serve there, or name the port of a service by --port';
    throw new CommandFailure(EXIT_NO_CONNECTION, `${who}: ${facts}; ${what}`);
  }
  if (facts.isTarget || anyService === true) return facts;
  throw new CommandFailure(
    EXIT_FAILED,
    `${who} is not a rocev2 conform serve; --any-service tests it all the same, with malformed packets among others`,
  );
}

async function runAll(tester: Tester, cases: readonly TestCase[], output: Output): Promise<CaseResult[]> {
  const results: CaseResult[] = [];
  for (const testCase of cases) {
    if (output.io.interrupted.aborted) break;
    const result = await tester.run(testCase);
    results.push(result);
    output.line(
      `  ${colored(output, result.verdict)}${result.rules.join(',').padEnd(8)} ${result.name}: ${result.about}`,
    );
    if (result.text !== null) output.line(`${' '.repeat(VERDICT_WIDTH + 11)}${result.text}`);
  }
  return results;
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
    differs: colors.yellow,
    'cannot tell': colors.yellow,
    'not supported': colors.dim,
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
