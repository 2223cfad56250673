/**
 * The list of commands. Only the one that was asked for is loaded, so that `rocev2 --help` does not pay for all of them.
 */

import type { Command } from 'commander';
import type { CliIo } from './output.js';

/** Adds the command to the program. */
export type Register = (program: Command, io: CliIo) => void;

export interface CommandEntry {
  readonly name: string;
  /** One line for `rocev2 --help`. */
  readonly summary: string;
  load(): Promise<{ readonly register: Register }>;
}

export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'bw',
    summary: 'throughput of WRITE, READ, SEND or atomics between two endpoints',
    load: () => import('./commands/bw.js'),
  },
  {
    name: 'lat',
    summary: 'latency of WRITE, READ, SEND or atomics between two endpoints',
    load: () => import('./commands/lat.js'),
  },
  {
    name: 'decode',
    summary: 'print the RoCEv2 packets of a pcapng or pcap file and what happened to each flow',
    load: () => import('./commands/decode.js'),
  },
  {
    name: 'fluid',
    summary: 'fluid models of DCQCN and TIMELY: fixed point, phase margin, queue swing',
    load: () => import('./commands/fluid.js'),
  },
];
