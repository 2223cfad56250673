/** How help texts look: one notation for defaults, sentences for commands, shared options only on request. */

import { type Command, Help, type HelpConfiguration, Option } from 'commander';
import { alternatives } from './options.js';

export const HELP_ALL = '--help-all';

const NETWORK_OPTIONS = 'Network options:';
const SECURITY_OPTIONS = 'Security options:';
const SHARED: readonly (string | undefined)[] = [NETWORK_OPTIONS, SECURITY_OPTIONS];

/** Options of the NIC that many commands share: `--help` leaves them out, `--help-all` shows them. */
export function addNetworkOptions(command: Command, add: (command: Command) => void): Command {
  return addUnder(NETWORK_OPTIONS, command, add);
}

/** The same for options of protected packets. */
export function addProtectionOptions(command: Command, add: (command: Command) => void): Command {
  return addUnder(SECURITY_OPTIONS, command, add);
}

function addUnder(heading: string, command: Command, add: (command: Command) => void): Command {
  const before = command.optionsGroup();
  command.optionsGroup(heading);
  add(command);
  return command.optionsGroup(before);
}

function isShared({ helpGroupHeading }: Option): boolean {
  return SHARED.includes(helpGroupHeading);
}

/** `all`: with the options that many commands share. */
export function helpConfiguration(all: boolean): HelpConfiguration {
  const standard = new Help();
  return {
    visibleOptions: (command) => {
      const visible = standard.visibleOptions(command);
      if (!visible.some(isShared)) return visible;
      const helpAll = new Option(HELP_ALL, 'print the help with network and security options');
      const own = visible.filter((option) => !isShared(option));
      return all ? [...own, helpAll, ...visible.filter(isShared)] : [...own, helpAll];
    },
    optionDescription: describeOption,
    argumentDescription: ({ description, argChoices, defaultValue, defaultValueDescription }) =>
      withDefault(withChoices(description, argChoices), defaultValueDescription ?? defaultValue),
    // `help` has its line in the list of all commands.
    visibleCommands: (command) =>
      standard.visibleCommands(command).filter((child) => command.parent === null || child.name() !== 'help'),
    subcommandTerm: (command) => command.name(),
    subcommandDescription: (command) => asSentence(summaryOf(command)),
  };
}

function describeOption(option: Option): string {
  const { description, argChoices, required, optional, defaultValue, defaultValueDescription } = option;
  const text = withChoices(description, argChoices);
  return required || optional ? withDefault(text, defaultValueDescription ?? defaultValue) : text;
}

function withChoices(text: string, choices: readonly string[] | undefined): string {
  if (choices === undefined) return text;
  return `${text}: ${alternatives(choices)}`;
}

function withDefault(text: string, value: unknown): string {
  return value === undefined || value === '' ? text : `${text} (default: ${String(value)})`;
}

/** One line about a command: its summary, or the first sentence of its description. */
export function summaryOf(command: Command): string {
  return command.summary() || firstSentence(command.description());
}

function firstSentence(text: string): string {
  return text.split(/[.:] /)[0].replace(/\.$/, '');
}

function asSentence(text: string): string {
  return text === '' ? text : `${text[0].toUpperCase()}${text.slice(1)}.`;
}
