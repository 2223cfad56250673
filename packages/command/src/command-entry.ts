/** What a command tells the program before it is loaded. */

import type { Command } from 'commander';
import type { CliIo } from './output.js';

/** Headings of `rocev2 --help`, in its order. */
export const COMMAND_GROUPS = [
  'Run and measure',
  'Break a network',
  'Monitor and inspect',
  'Storage',
  'Shared data',
  'Interoperate with stock tools',
  'Lab',
  'Shell',
] as const;

export type Register = (program: Command, io: CliIo, wholeProgram: () => Promise<Command>) => void;

export interface CommandEntry {
  readonly name: string;
  /** The heading of `rocev2 --help` that it belongs to. */
  readonly group: (typeof COMMAND_GROUPS)[number];
  /** One line for `rocev2 --help`: what a user does with it. */
  readonly summary: string;
  load(): Promise<{ readonly register: Register }>;
}
