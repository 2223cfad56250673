import type { CompletableCommand } from './model.js';

export function zshScript(commands: readonly CompletableCommand[]): string {
  const paths = commands.filter(({ path }) => path.length > 0).map(({ path }) => quoted(path.join(' ')));
  return `#compdef rocev2
# Completion of rocev2 for zsh: source <(rocev2 completion zsh), or a file _rocev2 in a folder of fpath.
_rocev2() {
  local at='' word
  local -a items
  for word in \${words[2,CURRENT-1]}; do
    case "\${at:+$at }$word" in
      (${paths.join('|')}) at="\${at:+$at }$word" ;;
    esac
  done
  case "$at \${words[CURRENT-1]}" in
${commands.flatMap(valueCases).join('\n')}
  esac
  case "$at" in
${commands.map(itemCase).join('\n')}
  esac
  _describe -o rocev2 items || _files
}
if [ "$funcstack[1]" = _rocev2 ]; then _rocev2 "$@"; else compdef _rocev2 rocev2; fi
`;
}

function valueCases({ path, options }: CompletableCommand): string[] {
  return options
    .filter(({ takesValue }) => takesValue)
    .map(({ names, choices }) => {
      const patterns = names.map((name) => quoted(`${path.join(' ')} ${name}`)).join('|');
      const offer = choices.length === 0 ? '_files' : `compadd -- ${choices.map(quoted).join(' ')}`;
      return `    (${patterns}) ${offer}; return ;;`;
    });
}

function itemCase({ path, subcommands, options, argumentChoices }: CompletableCommand): string {
  const items = [
    ...subcommands.map(({ name, summary }) => item(name, summary)),
    ...argumentChoices.map((choice) => item(choice, '')),
    ...options.flatMap(({ names, description }) => names.map((name) => item(name, description))),
  ];
  return `    (${quoted(path.join(' '))}) items=(${items.map(quoted).join(' ')}) ;;`;
}

/** \`name:description\`, where a colon of the name would end it. */
function item(name: string, description: string): string {
  return description === '' ? name : `${name.replaceAll(':', '\\:')}:${description}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
