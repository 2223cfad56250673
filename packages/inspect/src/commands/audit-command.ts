/** `rocev2 audit`: whether a capture keeps the specification, rule by rule. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  addressOption,
  type CliIo,
  CommandFailure,
  checkWritableBeside,
  counted,
  defineDocument,
  EXIT_FAILED,
  EXIT_USAGE,
  EXIT_VERIFICATION_FAILED,
  inputName,
  listOption,
  type Output,
  optionWithDefault,
  type Progress,
  packageVersion,
  portOption,
  printing,
  rangeOption,
  repeatableInput,
  SILENT_PROGRESS,
  writeOutputFile,
} from '@rocev2/command';
import type { Command } from 'commander';
import { CaptureCopy, type CaptureDamage, type CapturedPacket, CaptureStream } from 'rocev2/internal/capture';
import { chooseCrc32 } from 'rocev2/internal/driver';
import type { IpAddress } from 'rocev2/internal/packet';
import { Audit, type AuditReport } from '../audit/audit.js';
import { RULES, ruleOf } from '../audit/catalogue.js';
import { IcrcRepair } from '../audit/fix-icrc.js';
import { junitReport } from '../audit/junit.js';
import { sarifReport } from '../audit/sarif.js';
import { printReport, printRule } from './audit/audit-lines.js';
import { ruleListOption } from './audit/rule-list.js';
import { printStories } from './audit/story.js';
import { failIfDamaged } from './capture-damage.js';
import { type OpenedPackets, openedWords, ProtectedCapture } from './protected-capture.js';

/** The fields of `audit --json`. */
interface AuditResult extends AuditReport {
  /** The capture, as named on the command line. */
  readonly file: string;
  /** With --keys: what the keys made of protected packets. */
  readonly protected?: OpenedPackets;
  /** Where and why reading ended before the end of the file. */
  readonly damage?: CaptureDamage;
}

const AUDIT_DOCUMENT = defineDocument<AuditResult>('audit');

const PACKETS_PER_TURN = 4096;

interface AuditCommandOptions {
  readonly rules?: readonly number[];
  readonly explain?: number;
  readonly strict?: true;
  readonly at?: IpAddress;
  readonly udpPort: readonly number[];
  readonly sarif?: string;
  readonly junit?: string;
  readonly annotate?: string;
  readonly fixIcrc?: string;
  readonly keys?: string;
}

/** Adds `rocev2 audit` to `program`. */
export function register(program: Command, io: CliIo): void {
  program
    .command('audit')
    .description('Check the RoCEv2 packets of a pcapng or pcap file against the rules of the specification.')
    .argument('[file]', 'a capture, of any size, from any NIC, switch or tcpdump; -: standard input')
    .option('--rules <list>', 'check only these rules, such as 1-11,36', ruleListOption)
    .option(
      '--explain <rule>',
      'print the text of a rule; with a file, also the packets around each finding',
      rangeOption(1, RULES.length),
    )
    .option('--strict', 'exit with code 4 also if a rule of level should is broken')
    .option('--at <address>', 'address of the host that made the capture', addressOption)
    .addOption(
      optionWithDefault('--udp-port <list>', 'UDP ports of the RoCEv2 packets', listOption(portOption), '4791'),
    )
    .option('--sarif <file>', 'write the findings as SARIF 2.1.0')
    .option('--junit <file>', 'write the results as JUnit XML, one case per rule')
    .option('--annotate <file>', 'write the capture with the findings as packet comments')
    .option('--fix-icrc <file>', 'write the capture with all ICRCs corrected, without checking it')
    .option('--keys <file>', 'open protected packets with the secrets of --keylog')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
The result for each rule is kept, broken, or cannot tell: packets that a capture
lacks never count as a fault. packages/inspect/docs/rules.md lists the rules.

Exit code 4: a rule of level must is broken.
--at allows more verdicts: a packet captured at a host has reached it.
Wireshark shows the comments of --annotate as frame.comment.

Examples:
  rocev2 audit trace.pcapng
  rocev2 audit trace.pcapng --rules 33-51 --strict
  rocev2 audit trace.pcapng --explain 36
  rocev2 audit --explain 36
  rocev2 audit trace.pcapng --annotate found.pcapng --sarif found.sarif
  rocev2 audit protected.pcapng --keys keys.log
  rocev2 audit protected.pcapng --keys keys.log --fix-icrc opened.pcapng
  rocev2 audit anonymous.pcap --fix-icrc fixed.pcapng
  tcpdump -r trace.pcap -w - udp | rocev2 audit -`,
    )
    .action(printing(io, auditCommand));
}

async function auditCommand(given: string | undefined, options: AuditCommandOptions, output: Output): Promise<void> {
  if (options.explain !== undefined) printRule(output, ruleOf(options.explain)!);
  if (given === undefined) {
    if (options.explain !== undefined) return;
    throw new CommandFailure(EXIT_USAGE, "name a capture file, or a rule to explain ('rocev2 audit --help')");
  }
  chooseCrc32();
  const { sarif, junit, annotate: annotated, fixIcrc: fixed } = options;
  if (fixed !== undefined && (sarif ?? junit ?? annotated ?? options.explain) !== undefined) {
    throw new CommandFailure(EXIT_USAGE, '--fix-icrc checks nothing: audit the file that it writes');
  }
  for (const file of [sarif, junit, annotated, fixed]) await checkWritableBeside(given, file);
  await using input = await repeatableInput(given);
  const { path } = input;
  const name = inputName(given);
  if (fixed !== undefined) return fixIcrc({ path, name }, fixed, options, output);
  const { explain } = options;
  const keys = await openKeys(options);
  const audit = new Audit({
    udpPorts: options.udpPort,
    fitsRates: true,
    ...(options.rules !== undefined && { rules: options.rules }),
    ...(explain !== undefined && { rules: [explain] }),
    ...(options.at !== undefined && { capturedAt: options.at.text }),
  });
  const damage = await readAll(path, output, (captured) => {
    for (const packet of keys?.take(captured) ?? [captured]) audit.take(packet);
  });
  const report = audit.report();
  if (explain === undefined) printReport(output, report);
  else await printStories(output, { path, udpPorts: options.udpPort, keys: await openKeys(options) }, report.findings);
  if (keys !== undefined) output.line(`${openedWords(keys.packets)}.`);
  output.document(AUDIT_DOCUMENT, {
    file: given,
    ...report,
    ...(keys && { protected: keys.packets }),
    ...(damage && { damage }),
  });
  if (options.sarif !== undefined) {
    await writeOutputFile(options.sarif, sarifReport(report.findings, given, packageVersion()));
  }
  if (options.junit !== undefined) {
    await writeOutputFile(options.junit, junitReport(report.rules, report.findings, given));
  }
  if (options.annotate !== undefined) await annotate(path, options.annotate, report, output);
  failIfDamaged(name, damage);
  if (report.packets.roce === 0) throw new CommandFailure(EXIT_FAILED, `${name}: ${audit.whyNothing}`);
  failIfBroken(report, options.strict === true);
}

async function openKeys({ keys, udpPort }: AuditCommandOptions): Promise<ProtectedCapture | undefined> {
  return keys === undefined ? undefined : await ProtectedCapture.open(keys, udpPort);
}

function failIfBroken({ rules }: AuditReport, isStrict: boolean): void {
  const broken = rules.filter(({ verdict }) => verdict === 'violation').map(({ rule }) => ruleOf(rule)!);
  const counting = broken.filter(({ severity }) => severity === 'must' || (isStrict && severity === 'should'));
  if (counting.length === 0) return;
  const list = counting.map(({ id }) => id).join(', ');
  throw new CommandFailure(EXIT_VERIFICATION_FAILED, `${counted(counting.length, 'rule')} broken: ${list}`);
}

async function readAll(path: string, output: Output, take: (captured: CapturedPacket) => void | Promise<void>) {
  const stream = await CaptureStream.open(path);
  const progress: Progress = output.io.stdout.isTTY ? output.progress(stream.sizeBytes) : SILENT_PROGRESS;
  let count = 0;
  let bytes = 0;
  try {
    for await (const chunk of stream.chunks()) {
      for (const captured of chunk) {
        const work = take(captured);
        if (work !== undefined) await work;
        bytes += captured.bytes.length;
        if (++count % PACKETS_PER_TURN !== 0) continue;
        progress.update(Math.min(bytes, stream.sizeBytes), `${count} packets`);
        await nextTurn();
        output.throwIfInterrupted('interrupted: the file was not read to its end');
      }
    }
  } finally {
    progress.stop();
  }
  return stream.damage;
}

async function writeCopy<T>(to: string, fill: (copy: CaptureCopy) => Promise<T>): Promise<T> {
  const copy = await CaptureCopy.create(to);
  let result: T;
  try {
    result = await fill(copy);
  } catch (error) {
    await copy.discard();
    throw error;
  }
  await copy.close();
  return result;
}

async function annotate(path: string, to: string, { findings }: AuditReport, output: Output): Promise<void> {
  const remarks = new Map<number, string[]>();
  for (const { rule, verdict, packets, text } of findings) {
    const number = packets.at(-1)!;
    remarks.set(number, [...(remarks.get(number) ?? []), `rule ${rule}, ${verdict}: ${text}`]);
  }
  let number = 0;
  await writeCopy(to, (copy) =>
    readAll(path, output, (captured) => copy.add(captured, remarks.get(++number)?.join('\n'))),
  );
  output.line(`${to} has the capture with ${counted(remarks.size, 'comment')}.`);
}

async function fixIcrc(
  { path, name }: { readonly path: string; readonly name: string },
  to: string,
  options: AuditCommandOptions,
  output: Output,
): Promise<void> {
  const repair = new IcrcRepair(options.udpPort);
  const keys = await openKeys(options);
  let packets = 0;
  const damage = await writeCopy(to, (copy) =>
    readAll(path, output, async (captured) => {
      for (const opened of keys?.take(captured) ?? [captured]) {
        for (const packet of repair.take(opened)) {
          packets++;
          await copy.add(packet);
        }
      }
    }),
  );
  output.line(`${to} has ${counted(packets, 'packet')}; ${counted(repair.repaired, 'ICRC')} repaired.`);
  if (keys !== undefined) output.line(`${openedWords(keys.packets)}.`);
  failIfDamaged(name, damage);
}
