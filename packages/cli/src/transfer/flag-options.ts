/** Makes options of a command from the table of perftest's flags, and reports those without effect here. */

import { addAliasedOption } from '@rocev2/command';
import { type Command, Option } from 'commander';
import { RoceError } from 'rocev2/internal/core';
import {
  ACCEPTED_FLAGS,
  isFor,
  MISSING_FLAGS,
  presetFor,
  TAKEN_FLAGS,
  type TakenFlag,
  type ToolName,
} from './flags.js';

export function addPerftestFlags(command: Command, tool: ToolName): Command {
  for (const entry of TAKEN_FLAGS.filter((flag) => isFor(tool, flag))) addTaken(command, tool, entry);
  for (const { flags } of [...ACCEPTED_FLAGS, ...MISSING_FLAGS]) command.addOption(new Option(flags).hideHelp());
  return command;
}

function addTaken(command: Command, tool: ToolName, entry: TakenFlag): void {
  const option = new Option(entry.flags, entry.meaning);
  // Commander makes camel case of hyphens only, and some of perftest's names have underscores.
  const attribute = option.name().replaceAll(/[-_](\w)/g, (_, letter: string) => letter.toUpperCase());
  option.attributeName = () => attribute;
  const { parse } = entry;
  if (parse !== undefined) option.argParser(parse);
  const preset = presetFor(tool, entry);
  if (preset !== undefined) option.default(parse === undefined ? preset : parse(preset), preset);
  addAliasedOption(command, option, entry.also ?? []);
}

export function acceptedFlagsText(): string {
  const names = ACCEPTED_FLAGS.map(({ flags }) => flags.replace(/ <.*/, '').split(', ')[0]);
  return `Accepted for compatibility with perftest, without effect:\n${names.join(' ')} (docs/perftest.md lists all flags).`;
}

export function perftestFlagNotes(command: Command): string[] {
  const isGiven = (flags: string) => command.getOptionValueSource(new Option(flags).attributeName()) === 'cli';
  for (const { flags, reason } of MISSING_FLAGS) {
    if (!isGiven(flags)) continue;
    throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', `${nameOf(flags)} of perftest is not supported`, reason);
  }
  return ACCEPTED_FLAGS.filter(({ flags }) => isGiven(flags)).map(
    ({ flags, instead }) => `${nameOf(flags)} has no effect here: ${instead}`,
  );
}

function nameOf(flags: string): string {
  return flags.replace(/ <.*/, '');
}
