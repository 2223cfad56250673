/** The words to complete, from the commander program. The scripts for the shells are made from them. */

import type { Command, Option } from 'commander';

/** One option of a command. */
export interface CompletableOption {
  /** `-p`, `--port`. */
  readonly names: readonly string[];
  /** As the help has it. */
  readonly description: string;
  /** The option has a value. */
  readonly takesValue: boolean;
  /** Possible values; empty: any value, perhaps a file. */
  readonly choices: readonly string[];
}

/** One command or subcommand. */
export interface CompletableCommand {
  /** `['sim', 'run']`; empty for the program itself. */
  readonly path: readonly string[];
  /** As the help has it. */
  readonly summary: string;
  /** Subcommands, in the order of the help. */
  readonly subcommands: readonly { readonly name: string; readonly summary: string }[];
  /** In the order of the help. */
  readonly options: readonly CompletableOption[];
  /** Possible values of its arguments. */
  readonly argumentChoices: readonly string[];
}

/** A parser that says what it accepts, as `choiceOption` makes them. */
interface Choosing {
  readonly choices?: readonly string[];
}

/** The program and all its commands, parents before their subcommands. */
export function completableCommands(program: Command): CompletableCommand[] {
  return walk(program, []);
}

function walk(command: Command, path: readonly string[]): CompletableCommand[] {
  const children = command.commands.filter((child) => child.name() !== 'help');
  const own: CompletableCommand = {
    path,
    summary: summaryOf(command),
    subcommands: children.map((child) => ({ name: child.name(), summary: summaryOf(child) })),
    options: [...command.options.map(completable), helpOption],
    argumentChoices: command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices),
  };
  return [own, ...children.flatMap((child) => walk(child, [...path, child.name()]))];
}

/** The help option, which commander keeps apart from the others. */
const helpOption: CompletableOption = {
  names: ['-h', '--help'],
  description: 'print the help',
  takesValue: false,
  choices: [],
};

function completable({
  short,
  long,
  description,
  required,
  optional,
  argChoices,
  parseArg,
}: Option): CompletableOption {
  return {
    names: [short, long].filter((name) => name !== undefined && name !== null),
    description,
    takesValue: required || optional,
    choices: argChoices ?? (parseArg as Choosing | undefined)?.choices ?? [],
  };
}

function summaryOf(command: Command): string {
  return command.summary() || firstSentence(command.description());
}

function firstSentence(text: string): string {
  return text.split(/[.:] /)[0].replace(/\.$/, '');
}
