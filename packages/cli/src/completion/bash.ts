/** The completion script for bash: one function without helpers, so nothing else has to be installed. */

import type { CompletableCommand } from './model.js';

export function bashScript(commands: readonly CompletableCommand[]): string {
  const paths = commands.filter(({ path }) => path.length > 0).map(({ path }) => quoted(path.join(' ')));
  return `# Completion of rocev2 for bash: source <(rocev2 completion bash)
_rocev2() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} at='' i words=''
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "\${at:+$at }\${COMP_WORDS[i]}" in
      ${paths.join(' | ')}) at="\${at:+$at }\${COMP_WORDS[i]}" ;;
    esac
  done
  COMPREPLY=()
  case "$at $prev" in
${commands.flatMap(valueCases).join('\n')}
  esac
  case "$at" in
${commands.map(wordCase).join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _rocev2 rocev2
`;
}

function valueCases({ path, options }: CompletableCommand): string[] {
  return options
    .filter(({ takesValue }) => takesValue)
    .map(({ names, choices }) => {
      const patterns = names.map((name) => quoted(`${path.join(' ')} ${name}`)).join(' | ');
      const reply = choices.length === 0 ? '' : `COMPREPLY=($(compgen -W ${quoted(choices.join(' '))} -- "$cur")); `;
      return `    ${patterns}) ${reply}return ;;`;
    });
}

function wordCase({ path, subcommands, options, argumentChoices }: CompletableCommand): string {
  const words = [...subcommands.map(({ name }) => name), ...argumentChoices, ...options.flatMap(({ names }) => names)];
  return `    ${quoted(path.join(' '))}) words=${quoted(words.join(' '))} ;;`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
