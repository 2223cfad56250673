import { readFileSync } from 'node:fs';
import type { Output } from '@rocev2/command';

export function printAgent(output: Output): void {
  output.line(readFileSync(new URL('./agent.c', import.meta.url), 'utf8').trimEnd());
}
