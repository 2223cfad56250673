import type { CompletableCommand, CompletableOption } from './model.js';

export function fishScript(commands: readonly CompletableCommand[]): string {
  return [
    '# Completion of rocev2 for fish: rocev2 completion fish > ~/.config/fish/completions/rocev2.fish',
    ...commands.flatMap(commandLines),
    '',
  ].join('\n');
}

function commandLines({ path, subcommands, options, argumentChoices }: CompletableCommand): string[] {
  const seen = path.map((name) => `__fish_seen_subcommand_from ${name}`);
  const here = path.length === 0 ? '__fish_use_subcommand' : seen.join('; and ');
  const names = subcommands.map(({ name }) => name).join(' ');
  const open = path.length === 0 ? here : `${here}; and not __fish_seen_subcommand_from ${names}`;
  const line = (condition: string, rest: string) => `complete -c rocev2 -n ${quoted(condition)} ${rest}`;
  return [
    ...subcommands.map(({ name, summary }) => line(open, `-f -a ${quoted(name)} -d ${quoted(summary)}`)),
    ...(argumentChoices.length === 0 ? [] : [line(here, `-a ${quoted(argumentChoices.join(' '))}`)]),
    ...options.map((option) => line(here, optionWords(option))),
  ];
}

function optionWords({ names, description, takesValue, choices }: CompletableOption): string {
  const words = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
  if (takesValue) words.push(choices.length === 0 ? '-r' : `-x -a ${quoted(choices.join(' '))}`);
  return [...words, `-d ${quoted(description)}`].join(' ');
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
