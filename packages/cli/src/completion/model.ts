import { HELP_ALL, summaryOf } from '@rocev2/command';
import type { Command, Option } from 'commander';

export interface CompletableOption {
  readonly names: readonly string[];
  readonly description: string;
  readonly takesValue: boolean;
  readonly choices: readonly string[];
}

export interface CompletableCommand {
  readonly path: readonly string[];
  readonly summary: string;
  readonly subcommands: readonly { readonly name: string; readonly summary: string }[];
  readonly options: readonly CompletableOption[];
  readonly argumentChoices: readonly string[];
}

interface Choosing {
  readonly choices?: readonly string[];
}

export function completableCommands(program: Command): CompletableCommand[] {
  return walk(program, []);
}

function walk(command: Command, path: readonly string[]): CompletableCommand[] {
  const children = command.commands.filter((child) => child.name() !== 'help');
  const options = command.options.filter(({ hidden }) => !hidden).map(completable);
  const own: CompletableCommand = {
    path,
    summary: summaryOf(command),
    subcommands: children.map((child) => ({ name: child.name(), summary: summaryOf(child) })),
    options: [...options, ...HELP_OPTIONS],
    argumentChoices: command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices),
  };
  return [own, ...children.flatMap((child) => walk(child, [...path, child.name()]))];
}

const HELP_OPTIONS: readonly CompletableOption[] = [
  { names: ['-h', '--help'], description: 'print the help', takesValue: false, choices: [] },
  { names: [HELP_ALL], description: 'print the help with all options', takesValue: false, choices: [] },
];

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
