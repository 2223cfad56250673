/** `--extension FILE`: modules that register schemes, loaded before options are parsed. */

import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { addNetworkOptions } from './help-format.js';

const FLAG = '--extension';

export function addExtensionOption(command: Command): Command {
  const option = new Option(
    `${FLAG} <file>`,
    'load schemes from this module first (docs/extending.md); may be repeated',
  )
    .argParser((file: string, before: readonly string[]) => [...before, file])
    .default([], 'none');
  return addNetworkOptions(command, (group) => group.addOption(option));
}

/** The files that the arguments name, as absolute paths: so that option values and help list what they register. */
export function extensionFilesOf(args: readonly string[]): string[] {
  const end = args.indexOf('--');
  const own = end < 0 ? args : args.slice(0, end);
  return own.flatMap((arg, i) => {
    if (arg.startsWith(`${FLAG}=`)) return [resolve(arg.slice(FLAG.length + 1))];
    return own[i - 1] === FLAG ? [resolve(arg)] : [];
  });
}
