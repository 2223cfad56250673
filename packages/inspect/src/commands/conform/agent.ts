/** `rocev2 conform agent`: the source of the agent, which stands beside this file. */

import { readFileSync } from 'node:fs';
import type { Output } from '@rocev2/command';

/** Prints it. */
export function printAgent(output: Output): void {
  output.line(readFileSync(new URL('./agent.c', import.meta.url), 'utf8').trimEnd());
}
