import {
  type CliIo,
  COMMAND_GROUPS,
  type CommandEntry,
  CommandFailure,
  describeFailure,
  EXIT_INTERRUPTED,
  EXIT_OK,
  EXIT_USAGE,
  exitCodeOf,
  extensionFilesOf,
  HELP_ALL,
  helpConfiguration,
  packageVersion,
} from '@rocev2/command';
import { Command, CommanderError } from 'commander';
import { loadExtensions } from 'rocev2/internal/driver';

export async function runCli(
  commands: readonly CommandEntry[],
  args: readonly string[],
  streams: Omit<CliIo, 'args'>,
): Promise<number> {
  const io: CliIo = { ...streams, args };
  try {
    await loadExtensions(extensionFilesOf(args));
    const program = await buildProgram(commands, args, io);
    if (args.length === 0) {
      program.outputHelp({ error: true });
      return EXIT_USAGE;
    }
    const words = args.map((arg, i) => (isHelpAll(args, i) ? '--help' : arg));
    await program.parseAsync(words[0] === 'help' ? helpArguments(program, words.slice(1)) : words, { from: 'user' });
    return EXIT_OK;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_OK : EXIT_USAGE;
    // Any failure after Ctrl-C counts as an interruption, unless the command has set its own exit code.
    if (io.interrupted.aborted && !(error instanceof CommandFailure) && io.env['ROCEV2_DEBUG'] !== '1') {
      return EXIT_INTERRUPTED;
    }
    const text = describeFailure(error, io.env);
    if (text !== '') io.stderr.write(`${text}\n`);
    return exitCodeOf(error);
  }
}

function isHelpAll(args: readonly string[], at: number): boolean {
  return args[at] === HELP_ALL && !args.slice(0, at).includes('--');
}

function helpArguments(program: Command, words: readonly string[]): readonly string[] {
  let command = program;
  for (const [i, word] of words.entries()) {
    if (command.commands.length === 0) return [...words.slice(0, i), '--help'];
    const child = command.commands.find((candidate) => candidate.name() === word);
    if (child === undefined) return words.slice(0, i + 1);
    command = child;
  }
  return [...words, '--help'];
}

async function buildProgram(commands: readonly CommandEntry[], args: readonly string[], io: CliIo): Promise<Command> {
  const [first, second] = args.filter((arg) => !arg.startsWith('-'));
  const asked = first === 'help' ? second : first;
  const program = emptyProgram(io);
  for (const entry of byGroup(commands)) {
    if (entry.name === asked) await addCommand(program, entry, commands, io);
    else program.command(entry.name).summary(entry.summary).helpGroup(`${entry.group}:`);
  }
  return program;
}

export async function wholeProgram(commands: readonly CommandEntry[], io: CliIo): Promise<Command> {
  const program = emptyProgram(io);
  for (const entry of byGroup(commands)) await addCommand(program, entry, commands, io);
  return program;
}

/** The help shows groups in the order of their first commands. */
function byGroup(commands: readonly CommandEntry[]): CommandEntry[] {
  return COMMAND_GROUPS.flatMap((name) => commands.filter(({ group }) => group === name));
}

async function addCommand(
  program: Command,
  { name, group, summary, load }: CommandEntry,
  commands: readonly CommandEntry[],
  io: CliIo,
): Promise<void> {
  (await load()).register(program, io, () => wholeProgram(commands, io));
  const command = program.commands.at(-1)!;
  command.summary(summary).helpGroup(`${group}:`);
  nameHelpAfterErrors(command, `rocev2 ${name}`);
}

/** Adds a hint to usage errors: the help of this very command. */
function nameHelpAfterErrors(command: Command, path: string): void {
  command.showHelpAfterError(`Run '${path} --help' for its options and examples.`);
  for (const child of command.commands) nameHelpAfterErrors(child, `${path} ${child.name()}`);
}

function emptyProgram(io: CliIo): Command {
  const program = new Command('rocev2')
    .description('RDMA for Node.js without an RDMA NIC: a software RoCEv2 stack.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .commandsGroup(`${COMMAND_GROUPS.at(-1)}:`)
    .helpCommand('help [command]', 'print the help of a command')
    .exitOverride()
    .configureHelp(helpConfiguration(io.args.some((_, i) => isHelpAll(io.args, i))))
    .showSuggestionAfterError()
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      outputError: (text, write) => write(asSentences(text.replace(/^error: /, 'rocev2: '))),
    })
    .addHelpText('after', "\nRun 'rocev2 help COMMAND' for its options and examples.");
  program.showHelpAfterError("Run 'rocev2 --help' for the commands and options.");
  return program;
}

function asSentences(text: string): string {
  return text.replace(/(?<= is invalid\. )\p{Ll}/u, (letter) => letter.toUpperCase());
}
