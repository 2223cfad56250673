/** A new user finds the command for a task in `rocev2 --help` within ten seconds. */

import { expect, it } from 'vitest';
import { COMMAND_GROUPS } from '../../command/src/command-entry.js';
import { COMMANDS } from '../src/commands.js';

/** Of a reader who skims. */
const WORDS_PER_SECOND = 5;
const wordsIn = (texts: readonly string[]) => texts.join(' ').split(/\s+/).length;

/** The headings to the first with one of the words of the task, then the lines of its commands to the first with one. */
function read(task: readonly string[]): { readonly command: string | undefined; readonly words: number } {
  const has = (text: string) => task.some((word) => text.toLowerCase().includes(word));
  const heading = COMMAND_GROUPS.findIndex(has);
  const lines = COMMANDS.filter(({ group }) => group === COMMAND_GROUPS[heading]);
  const line = lines.findIndex(({ summary }) => has(summary));
  const seen = [
    ...COMMAND_GROUPS.slice(0, heading + 1),
    ...lines.slice(0, line + 1).map(({ name, summary }) => `${name} ${summary}`),
  ];
  return { command: lines[line]?.name, words: wordsIn(seen) };
}

it.each([
  ['monitor a server', ['monitor'], 'dashboard'],
  ['measure throughput', ['measure', 'throughput'], 'bw'],
  ['lose packets of a network', ['network', 'fault'], 'switch'],
  ['serve a disk', ['storage', 'disk'], 'disk'],
  ['share data', ['shared', 'share'], 'kv'],
])('%s', (_, task, command) => {
  const found = read(task);
  expect(found.command).toBe(command);
  expect(found.words).toBeLessThan(10 * WORDS_PER_SECOND);
});

it('not where no heading has a word of the task', () => {
  expect(read(['nothing of the kind']).command).toBeUndefined();
});
