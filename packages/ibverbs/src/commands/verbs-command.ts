/** `rocev2 verbs`: unmodified programs of libibverbs on the software NIC. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import process from 'node:process';
import {
  addFaultsOption,
  addressOption,
  type CliIo,
  CommandFailure,
  choiceOption,
  countOption,
  Output,
  untilInterrupted,
} from '@rocev2/command';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { PORT_IOS, type PortIo } from 'rocev2/internal/driver';
import { IpAddress } from 'rocev2/internal/packet';
import { shimLibrary } from '../library.js';
import { NicServer } from '../nic-server.js';
import { holderOf, socketPath } from '../socket-folder.js';

const SIGNAL_EXIT_BASE = 128;
const DEFAULT_ADDRESS = IpAddress.parse('127.0.0.1');

interface VerbsOptions {
  readonly bind: IpAddress;
  readonly io: PortIo;
  readonly faults?: string;
  readonly seed?: number;
  readonly pcap?: string;
}

/** Adds `rocev2 verbs` to `program`. */
export function register(program: Command, io: CliIo): void {
  const verbs = program
    .command('verbs')
    .description('Run a program of libibverbs, unchanged and without RDMA hardware, with the device rocev2_0.')
    .argument('<command...>', "the program and its arguments, after '--'");
  addVerbsOptions(verbs)
    .addHelpText(
      'after',
      `
The NIC of the address runs in this process, or in 'rocev2 verbs serve'
if that runs already.

Examples:
  rocev2 verbs -- ibv_devinfo
  rocev2 verbs --bind 127.0.0.2 -- ib_write_bw
  rocev2 verbs -- ib_write_bw 127.0.0.2`,
    )
    .action((words: string[], options: VerbsOptions) => runProgram(words, options, new Output(io, false)));
  addVerbsOptions(
    verbs
      .command('serve')
      .description('Keep the NIC of an address running until Ctrl-C, for programs that come and go.'),
  )
    .addHelpText('after', '\nExamples:\n  rocev2 verbs serve\n  rocev2 verbs serve --bind 127.0.0.2 --loss random=0.01')
    .action((_: VerbsOptions, command: Command) => serve(command.optsWithGlobals(), new Output(io, false)));
  addBindOption(
    verbs.command('env').description("Print the environment for programs that use the NIC of 'rocev2 verbs serve'."),
  )
    .addHelpText('after', '\nExamples:\n  eval "$(rocev2 verbs env)"\n  rocev2 verbs env >> "$GITHUB_ENV"')
    .action((_: VerbsOptions, command: Command) => printEnvironment(command.optsWithGlobals(), new Output(io, false)));
}

function addBindOption(command: Command): Command {
  const bind = new Option('--bind <address>', 'IP address of the NIC').argParser(oneAddress);
  return command.addOption(bind.default(DEFAULT_ADDRESS, DEFAULT_ADDRESS.text));
}

function oneAddress(text: string, given: IpAddress): IpAddress {
  if (given === DEFAULT_ADDRESS) return addressOption(text);
  throw new InvalidArgumentError("a NIC has one address; start each NIC by 'rocev2 verbs serve'");
}

function addVerbsOptions(command: Command): Command {
  addFaultsOption(addBindOption(command), 'fault rules on this NIC, e.g. random=0.01 (docs/faults.md)', ['--loss'])
    .option('--seed <n>', 'seed for random fault rules', countOption)
    .option('--pcap <file>', 'capture the packets of this NIC to a pcapng file')
    .option('--io <backend>', `I/O backend: ${PORT_IOS.join(', ')}`, choiceOption(PORT_IOS), 'auto');
  return command;
}

function openServer(socket: string, { bind, io, faults, seed, pcap }: VerbsOptions): Promise<NicServer> {
  return NicServer.open(socket, {
    address: bind.text,
    io,
    ...(faults !== undefined && { loss: faults }),
    ...(seed !== undefined && { seed }),
    ...(pcap !== undefined && { pcap }),
  });
}

async function environment(socket: string): Promise<{ readonly [name: string]: string }> {
  const preloaded = process.env['LD_PRELOAD'];
  const library = await shimLibrary(process.env);
  return {
    LD_PRELOAD: preloaded === undefined || preloaded === '' ? library : `${library}:${preloaded}`,
    ROCEV2_VERBS_SOCKETS: socket,
  };
}

async function runProgram(words: readonly string[], options: VerbsOptions, output: Output): Promise<void> {
  const socket = await socketPath(options.bind.text, process.env);
  const variables = await environment(socket);
  const server = (await holderOf(socket)) === undefined ? await openServer(socket, options) : undefined;
  try {
    const child = spawn(words[0], words.slice(1), { stdio: 'inherit', env: { ...process.env, ...variables } });
    const ended = once(child, 'exit').catch((cause: Error) => {
      throw new CommandFailure(127, `cannot run ${words[0]}: ${cause.message}`, { cause });
    });
    const interrupted = untilInterrupted(output.io.interrupted).then(() => child.kill('SIGTERM'));
    const [code, signal] = (await ended) as [number | null, NodeJS.Signals | null];
    // Other programs may have come to this NIC.
    await Promise.race([server?.idle(), interrupted]);
    const exitCode = signal === null ? code! : SIGNAL_EXIT_BASE + constants.signals[signal];
    if (exitCode !== 0) throw new CommandFailure(exitCode, signal === null ? '' : `${words[0]} was ended by ${signal}`);
  } finally {
    await server?.close();
  }
}

async function serve(options: VerbsOptions, output: Output): Promise<void> {
  const socket = await socketPath(options.bind.text, process.env);
  const holder = await holderOf(socket);
  if (holder !== undefined) {
    const who = holder === 0 ? 'another process' : `process ${holder}`;
    throw new CommandFailure(
      1,
      `${who} already serves the NIC of ${options.bind.text}: end it, or give another --bind`,
    );
  }
  const server = await openServer(socket, options);
  output.note(`NIC on ${options.bind.text}: ${server.device.portDescription}`);
  output.note(`programs find it by: eval "$(rocev2 verbs env --bind ${options.bind.text})"`);
  output.ready();
  await untilInterrupted(output.io.interrupted);
  await server.close();
}

async function printEnvironment({ bind }: VerbsOptions, output: Output): Promise<void> {
  const variables = await environment(await socketPath(bind.text, process.env));
  for (const [name, value] of Object.entries(variables)) output.line(`export ${name}='${value}'`);
}
