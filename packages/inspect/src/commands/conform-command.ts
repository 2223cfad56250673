/** `rocev2 conform`: sends requests to a peer and checks its responses against the specification. */

import {
  addNicOptions,
  addRecoveryOptions,
  addressOption,
  type CliIo,
  defineDocument,
  frameOption,
  framePortOption,
  leftAligned,
  linkMtuOption,
  mtuOption,
  Output,
  optionWithDefault,
  portOption,
  positiveDurationOption,
  printing,
  rightAligned,
} from '@rocev2/command';
import { type Command, Option } from 'commander';
import { ruleOf } from '../audit/catalogue.js';
import { CASES } from '../conform/cases.js';
import type { Need } from '../conform/step.js';
import { printAgent } from './conform/agent.js';
import { caseListOption } from './conform/case-list.js';
import { runMatrix } from './conform/matrix.js';
import { runConform } from './conform/run.js';
import { runConformServe } from './conform/serve.js';
import { CONFORM_PORT, VIAS } from './conform/via.js';

/** A case of `conform list --json`. */
interface ListedCase {
  /** Its name: subject and variant. */
  readonly name: string;
  /** The rules that it judges. */
  readonly rules: readonly number[];
  /** What it is about. */
  readonly about: string;
  /** What it needs beyond a connection. */
  readonly needs: readonly Need[];
}

/** The fields of `conform list --json`. */
interface ConformListResult {
  /** All cases, in the order in which they are run. */
  readonly cases: readonly ListedCase[];
}

const CONFORM_LIST_DOCUMENT = defineDocument<ConformListResult>('conform-list');

/** Adds `rocev2 conform` to `program`. */
export function register(program: Command, io: CliIo): void {
  const conform = program
    .command('conform')
    .description('Test a peer: send it requests and check its responses against the rules of the specification.')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 conform serve --bind 127.0.0.2
  rocev2 conform run 127.0.0.2 --bind 127.0.0.1
  rocev2 conform list
  rocev2 conform help run                         # the options of a command`,
    );
  addServe(conform, io);
  addRun(conform, io);
  addMatrix(conform, io);
  conform
    .command('agent')
    .description('Print the source of the agent: one C file over libibverbs, for a host without rocev2.')
    .addHelpText(
      'after',
      `
The agent makes queue pairs on any RDMA NIC for rocev2 conform run --via agent.

Examples:
  rocev2 conform agent > agent.c                  # there: cc -o agent agent.c -libverbs
  rocev2 conform help agent`,
    )
    .action(() => printAgent(new Output(io, false)));
  conform
    .command('list')
    .description('List the cases, their rules and their subjects.')
    .option('--json', 'print one JSON document')
    .addHelpText('after', '\nExamples:\n  rocev2 conform list\n  rocev2 conform list --json')
    .action((options: { json?: true }) => listCases(new Output(io, options.json === true)));
}

function addServe(conform: Command, io: CliIo): void {
  addRecoveryOptions(addNicOptions(conform.command('serve')))
    .description('Run a target: offer memory and receives to a tester until Ctrl-C.')
    .requiredOption('--bind <address>', 'RoCE address of this side', addressOption)
    .option('--port <port>', 'rdma_cm port', portOption, CONFORM_PORT)
    .addOption(frameOption())
    .addOption(framePortOption())
    .addOption(linkMtuOption())
    .option('--json', 'print one JSON document at the end')
    .addHelpText(
      'after',
      `
It serves one tester at a time. Any host that connects may write to the memory
of the target, which holds no other data.

Examples:
  rocev2 conform serve --bind 10.0.0.2
  rocev2 conform serve --bind 127.0.0.2 --port 7171`,
    )
    .action(printing(io, runConformServe));
}

function addRun(conform: Command, io: CliIo): void {
  conform
    .command('run')
    .description('Test a target: send each test case and check the responses.')
    .argument('<host>', 'name or address of the target')
    .addOption(
      new Option('--via <name>', 'how the tester connects queue pairs of the target').choices(VIAS).default('cm'),
    )
    .option(
      '--port <port>',
      `rdma_cm port of the target, or TCP port of the agent (default: ${CONFORM_PORT} for rdma_cm)`,
      portOption,
    )
    .option('--agent <host>', 'with --via agent: host of the agent (default: the target)')
    .option(
      '--any-service',
      'also test a service other than rocev2 conform serve, with the cases that need only a connection',
    )
    .option('--only <list>', 'cases by rule, name or subject, such as 12,24-29,gap', caseListOption)
    .option('--mtu <bytes>', 'path MTU of the connections', mtuOption, 256)
    .addOption(optionWithDefault('--timeout <time>', 'time limit of a response', positiveDurationOption, '500ms'))
    .addOption(
      optionWithDefault(
        '--quiet <time>',
        'time to wait for a response that must not come',
        positiveDurationOption,
        '50ms',
      ),
    )
    .option('--strict', 'exit with code 4 also if a rule of level should is broken')
    .option('--bind <address>', 'RoCE address of this side (default: from the routing table)', addressOption)
    .addOption(frameOption())
    .addOption(framePortOption())
    .addOption(linkMtuOption())
    .option('--name <name>', 'name of the target in reports (default: HOST)')
    .option('--report <file>', 'write one HTML page with each rule, each case and its packets')
    .option('--pcap <file>', 'write all packets of the test to this pcapng file')
    .option('--junit <file>', 'write the results as JUnit XML, one test case each')
    .option('--sarif <file>', 'write the failures as SARIF, for code hosts')
    .option('--results <file>', 'write the document of --json to this file')
    .option('--bundle <file>', 'write results, report, packets and environment as one .tgz archive')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
The tester sends malformed and forbidden packets on its own connections, at
most a few dozen per case. A target consents by running rocev2 conform serve.
Test other services (--any-service) only with permission.

Exit code 3: no connection. Exit code 4: a rule of level must is broken.

Examples:
  rocev2 conform run 10.0.0.2
  rocev2 conform run 10.0.0.2 --only 24-29,gap --pcap lengths.pcapng
  rocev2 conform run 10.0.0.2 --report found.html --bundle found.tgz
  rocev2 conform run 10.0.0.2 --via agent                   # rocev2 conform help agent
  rocev2 conform run 10.0.0.2 --port 7174 --any-service     # rping -s -P there`,
    )
    .action(printing(io, runConform));
}

function addMatrix(conform: Command, io: CliIo): void {
  conform
    .command('matrix')
    .description('Compare the results of several peers in one table.')
    .argument('<file...>', 'results of conform run, bundles, or lists of peers')
    .option('--html <file>', 'write one HTML page, whose cells link to the packets')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
A list of peers names results, relative to the folder of the list:
  {"peers": [{"name": "NIC 1", "results": ["ipv4.json", "ipv6.json"]}]}

Examples:
  rocev2 conform matrix ours.json theirs.tgz --html matrix.html
  rocev2 conform matrix peers.json --html matrix.html`,
    )
    .action((files: string[], options: { html?: string; json?: true }) =>
      runMatrix(files, options.html, new Output(io, options.json === true)),
    );
}

function listCases(output: Output): void {
  output.table(
    [...rightAligned('Rule'), ...leftAligned('Level', 'Case', 'Needs', 'Subject')],
    CASES.map(({ name, rules, about, needs = [] }) => [
      rules.join(','),
      ruleOf(rules[0])!.severity,
      name,
      needs.join(', '),
      about,
    ]),
  );
  output.document(CONFORM_LIST_DOCUMENT, {
    cases: CASES.map(({ name, rules, about, needs = [] }) => ({ name, rules, about, needs })),
  });
}
