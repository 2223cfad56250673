import { type Command, Option } from 'commander';

/** Adds an option, and further spellings of it that `--help` hides. */
export function addAliasedOption(command: Command, option: Option, aliases: readonly string[]): Command {
  command.addOption(option);
  const value = / [<[].*/.exec(option.flags)?.[0] ?? '';
  for (const name of aliases) {
    const alias = new Option(`${name}${value}`).hideHelp();
    if (option.parseArg !== undefined) alias.argParser(option.parseArg);
    command.addOption(alias);
    command.on(`option:${alias.name()}`, () => {
      command.setOptionValueWithSource(option.attributeName(), command.getOptionValue(alias.attributeName()), 'cli');
    });
  }
  return command;
}

/** The option for fault rules, which has one name in all commands. */
export function addFaultsOption(
  command: Command,
  description: string,
  aliases: readonly string[],
  set: (option: Option) => Option = (option) => option,
): Command {
  return addAliasedOption(command, set(new Option('--faults <rules>', description)), aliases);
}
