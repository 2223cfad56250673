/** `rocev2 completion`: scripts that complete commands, options and values in a shell. */

import type { CliIo } from '@rocev2/command';
import { Argument, type Command } from 'commander';
import { bashScript } from '../completion/bash.js';
import { fishScript } from '../completion/fish.js';
import { completableCommands } from '../completion/model.js';
import { zshScript } from '../completion/zsh.js';

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

export function register(program: Command, io: CliIo, wholeProgram: () => Promise<Command>): void {
  program
    .command('completion')
    .description('Print a script that completes commands, options and their values in a shell.')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SCRIPTS)))
    .addHelpText(
      'after',
      `
Examples:
  source <(rocev2 completion bash)                                   # in ~/.bashrc
  source <(rocev2 completion zsh)                                    # in ~/.zshrc, after compinit
  rocev2 completion fish > ~/.config/fish/completions/rocev2.fish`,
    )
    .action(async (shell: keyof typeof SCRIPTS) => {
      io.stdout.write(SCRIPTS[shell](completableCommands(await wholeProgram())));
    });
}
