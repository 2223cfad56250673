/** `rocev2 nvme`: NVMe over Fabrics, target and host. */

import {
  addAliasedOption,
  addFaultsOption,
  addHttpTelemetryOption,
  addNicOptions,
  addPlanOptions,
  addressOption,
  alternatives,
  type CliIo,
  choiceOption,
  countOption,
  defineDocument,
  listOption,
  Output,
  optionWithDefault,
  portOption,
  printing,
  rangeOption,
  sizeOption,
  textOption,
} from '@rocev2/command';
import { type Command, Option } from 'commander';
import { ANA_STATES } from '../ana.js';
import { parseCommandFaults } from '../command-faults.js';
import { NVME_PORT } from '../opcodes.js';
import { checkNqn } from '../subsystem.js';
import { runNvmeBench } from './bench.js';
import { parseChange, type TargetChange } from './changes.js';
import { askForChange } from './control.js';
import { parseDisk } from './disk-option.js';
import { addHostOptions, addPathOptions, NVME_TRANSPORTS } from './host.js';
import type { SubsystemFlags } from './only-subsystem.js';
import { runDiscover, runIdController, runList } from './queries.js';
import { runNvmeTarget } from './serve-target.js';

/** The fields of `nvme add`, `remove`, `resize` and `ana` with `--json`. */
interface NvmeChangeResult {
  /** What the target did, in words. */
  readonly done: string;
}

const NVME_CHANGE_DOCUMENT = defineDocument<NvmeChangeResult>('nvme-change');

/** Adds `rocev2 nvme` to `program`. */
export function register(program: Command, io: CliIo): void {
  const nvme = program
    .command('nvme')
    .description('Serve disks over NVMe over Fabrics, and query targets.')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 nvme target --disk memory --size 1GiB
  rocev2 nvme discover 127.0.0.1
  rocev2 nvme help target                         # the options of a command`,
    );
  registerTarget(nvme, io);
  registerChanges(nvme, io);
  registerBench(nvme, io);
  registerDiscover(nvme, io);
  registerSubsystemQueries(nvme, io);
}

function registerTarget(nvme: Command, io: CliIo): void {
  const command = nvme
    .command('target')
    .description(
      'Run an NVMe over Fabrics target over RDMA and TCP. Disks with the same NAME are namespaces of one subsystem, in the ' +
        'order given. It runs until Ctrl-C, then prints its counters.',
    )
    .addOption(
      new Option(
        '--disk <disk>',
        '[NAME=]memory, [NAME=]file:PATH, [NAME=]nbd:URI or [NAME=]stream:DISK@MANAGER[?psk=FILE]; NAME is a word or an NQN (default: disk); may be repeated',
      )
        .argParser(repeated(textOption(parseDisk)))
        .makeOptionMandatory(),
    )
    .option('--size <size>', 'size of disks in memory and in new files', sizeOption)
    .addOption(
      optionWithDefault('--bind <addresses>', 'IP addresses of this side', listOption(addressOption), '127.0.0.1'),
    )
    .option('-p, --port <port>', 'port of RDMA and TCP', portOption, NVME_PORT)
    .addOption(transportsOption('--transport <list>'))
    .addOption(
      new Option('--host <nqn>', 'only this host may connect (default: any); may be repeated').argParser(
        repeated(textOption(checkedNqn)),
      ),
    )
    .option('--dhchap-keys <file>', 'authenticate hosts by DH-HMAC-CHAP: lines HOSTNQN SECRET [CONTROLLERSECRET]')
    .option('--tls-keys <file>', 'require TLS 1.3 with the key of each host: lines HOSTNQN KEY; with --transport tcp')
    .option('--reservations <file>', 'file for persistent reservations (CPTPL)')
    .option('--read-only', 'hosts cannot write')
    .option('--control <path>', "Unix socket for 'rocev2 nvme add', remove, resize and ana");
  addHttpTelemetryOption(command);
  addFaultsOption(command, 'fault rules of RDMA on this side, e.g. random=0.001 (docs/faults.md)', ['--loss']);
  addAliasedOption(
    command,
    new Option(
      '--command-faults <rules>',
      'I/O commands that fail or are slow, e.g. opcode=write:status=0x281:every=1000 (packages/nvme/docs/nvme.md)',
    ).argParser(textOption(checkedFaults)),
    ['--fault'],
  ).option('--seed <n>', 'seed for random fault rules', countOption);
  addNicOptions(command, 'worker')
    .option('--json', 'print one JSON document at the end')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 nvme target --disk memory --size 1GiB --bind 192.0.2.7
  rocev2 nvme target --disk db=file:/var/tmp/db --disk log=file:/var/tmp/log --size 10GiB
  nvme connect -t rdma -a 192.0.2.7 -n nqn.2026-11.rocev2:disk     # on the host`,
    )
    .action(printing(io, runNvmeTarget));
}

/** A change of a running target, which is a separate command. */
interface Change {
  readonly name: TargetChange['kind'];
  readonly description: string;
  readonly words: ReadonlyArray<readonly [name: string, description: string]>;
  readonly examples: readonly string[];
}

const NAMESPACE = [
  ['<name>', 'name or NQN of the subsystem'],
  ['<nsid>', 'namespace ID'],
] as const;

const CHANGES: readonly Change[] = [
  {
    name: 'add',
    description: 'Add a disk as a namespace to a running target, and notify its hosts.',
    words: [
      ['<disk>', "[NAME=]BACKEND, as for 'nvme target --disk'"],
      ['[size]', 'size of a disk in memory or of a new file'],
    ],
    examples: ['disk=memory 1GiB', 'db=file:/var/tmp/db2 10GiB'],
  },
  {
    name: 'remove',
    description: 'Remove a namespace from a running target, and notify its hosts.',
    words: NAMESPACE,
    examples: ['disk 1'],
  },
  {
    name: 'resize',
    description: 'Enlarge a disk in memory of a running target, and notify its hosts.',
    words: [...NAMESPACE, ['<size>', 'its new size']],
    examples: ['disk 1 2GiB'],
  },
  {
    name: 'ana',
    description: 'Set the ANA state of a port of a running target, and notify its hosts.',
    words: [
      ['<transport>', alternatives(NVME_TRANSPORTS)],
      ['<address>', 'IP address of the port'],
      ['<state>', alternatives(Object.keys(ANA_STATES))],
    ],
    examples: ['rdma 192.0.2.7 inaccessible', 'tcp 192.0.2.7 optimized'],
  },
];

function registerChanges(nvme: Command, io: CliIo): void {
  for (const { name, description, words, examples } of CHANGES) {
    const command = nvme
      .command(name)
      .description(description)
      .argument('<path>', 'Unix socket of the target: its option --control');
    for (const [word, meaning] of words) command.argument(word, meaning);
    command
      .option('--json', 'print one JSON document')
      .addHelpText(
        'after',
        `\nExamples:\n${examples.map((example) => `  rocev2 nvme ${name} /tmp/target.sock ${example}`).join('\n')}`,
      )
      .action(async () => {
        const [path, ...rest] = command.args;
        parseChange([name, ...rest]);
        const done = await askForChange(path, [name, ...rest]);
        const output = new Output(io, command.opts<{ json?: true }>().json === true);
        output.line(done);
        output.document(NVME_CHANGE_DOCUMENT, { done });
      });
  }
}

function registerBench(nvme: Command, io: CliIo): void {
  const command = nvme
    .command('bench')
    .description(
      'Measure IOPS, latency and CPU time of a namespace over each transport. The CPU time is that of this process; it excludes the target.',
    )
    .argument('<host>', 'the target; the namespace is OVERWRITTEN')
    .requiredOption('--nqn <nqn>', 'NQN of the subsystem', textOption(checkedNqn))
    .option('--nsid <n>', 'namespace ID', countOption, 1)
    .addOption(transportsOption('--transports <list>'))
    .option('--nbd <uri>', 'also measure an NBD export; it is OVERWRITTEN')
    .option('--queues <n>', 'I/O queues', rangeOption(1, 64), 1);
  addNicOptions(addPathOptions(addPlanOptions(command, '4KiB,1MiB', '1,32')), 'worker')
    .option('--seed <n>', 'seed of the offsets', countOption, 1)
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 nvme bench 192.0.2.7 --nqn nqn.2026-11.rocev2:disk
  rocev2 nvme bench 127.0.0.1 --nqn nqn.2026-11.rocev2:disk --transports tcp -D 2s --json`,
    )
    .action(printing(io, runNvmeBench));
}

/** A command that prints the answer of a target. */
function registerQuery(
  command: Command,
  io: CliIo,
  run: (host: string, options: SubsystemFlags, output: Output) => Promise<void>,
  examples: string,
): void {
  addHostOptions(command.argument('<host>', 'the target'))
    .option('--json', 'print one JSON document')
    .addHelpText('after', `\nExamples:\n${examples}`)
    .action(printing(io, run));
}

function registerDiscover(nvme: Command, io: CliIo): void {
  const command = nvme.command('discover').description('Print the subsystems that a target offers to this host.');
  registerQuery(
    command,
    io,
    runDiscover,
    `  rocev2 nvme discover 192.0.2.7
  rocev2 nvme discover 127.0.0.1 --transport rdma --bind 127.0.0.2`,
  );
}

function registerSubsystemQueries(nvme: Command, io: CliIo): void {
  const queries = [
    ['list', 'Print the namespaces of a subsystem.', runList],
    ['id-ctrl', 'Print the identity of the controller of a subsystem.', runIdController],
  ] as const;
  for (const [name, description, run] of queries) {
    const command = nvme
      .command(name)
      .description(description)
      .option('--nqn <nqn>', 'NQN of the subsystem (default: the only one of the target)', textOption(checkedNqn));
    registerQuery(
      command,
      io,
      run,
      `  rocev2 nvme ${name} 192.0.2.7
  rocev2 nvme ${name} 192.0.2.7 --nqn nqn.2026-11.rocev2:disk`,
    );
  }
}

function transportsOption(flags: string): Option {
  const parse = listOption(choiceOption(NVME_TRANSPORTS));
  return optionWithDefault(flags, NVME_TRANSPORTS.join(', '), parse, NVME_TRANSPORTS.join());
}

function repeated<T>(parse: (text: string) => T): (text: string, before?: readonly T[]) => T[] {
  return (text, before = []) => [...before, parse(text)];
}

function checkedFaults(text: string): string {
  parseCommandFaults(text);
  return text;
}

function checkedNqn(text: string): string {
  checkNqn(text);
  return text;
}
