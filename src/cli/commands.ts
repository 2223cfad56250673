/**
 * The list of commands. Only the one that was asked for is loaded, so that `rocev2 --help` does not pay for all of them.
 */

import type { Command } from 'commander';
import type { CliIo } from './output.js';

/** Adds the command to the program. `wholeProgram` makes one with all commands, for those that speak about them. */
export type Register = (program: Command, io: CliIo, wholeProgram: () => Promise<Command>) => void;

/** A command before it is loaded. */
export interface CommandEntry {
  /** The word on the command line. */
  readonly name: string;
  /** One line for `rocev2 --help`. */
  readonly summary: string;
  /** Imports the module that registers it. */
  load(): Promise<{ readonly register: Register }>;
}

/** In the order of `rocev2 --help`. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'demo',
    summary: 'two endpoints and a switch on this machine: every operation verified, then the livelock',
    load: () => import('./commands/demo.js'),
  },
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
    name: 'livelock',
    summary: 'the SIGCOMM 2016 experiment: why go-back-0 delivers nothing when one packet in 256 is lost',
    load: () => import('./commands/livelock.js'),
  },
  {
    name: 'switch',
    summary: 'a software Ethernet switch on UDP sockets, with fault rules',
    load: () => import('./commands/switch.js'),
  },
  {
    name: 'decode',
    summary: 'print the RoCEv2 packets of a capture, or the events of a trace, and what happened to each flow',
    load: () => import('./commands/decode.js'),
  },
  {
    name: 'estats',
    summary: 'look into running endpoints: latency by stage, histograms, dumps, who owns the latency',
    load: () => import('./commands/estats.js'),
  },
  {
    name: 'pingpong',
    summary: 'messages back and forth with ibv_rc_pingpong',
    load: () => import('./commands/pingpong.js'),
  },
  {
    name: 'srq-pingpong',
    summary: 'messages back and forth on queue pairs that share their receives, with ibv_srq_pingpong',
    load: () => import('./commands/srq-pingpong.js'),
  },
  {
    name: 'rping',
    summary: 'ping over rdma_cm with rping',
    load: () => import('./commands/rping.js'),
  },
  {
    name: 'ucmatose',
    summary: 'connections over rdma_cm, and messages both ways, with ucmatose',
    load: () => import('./commands/ucmatose.js'),
  },
  {
    name: 'cmtime',
    summary: 'how long connections over rdma_cm take, with cmtime',
    load: () => import('./commands/cmtime.js'),
  },
  {
    name: 'window',
    summary: 'writes into a sliding-window memory pool, against a request for memory before every write',
    load: () => import('./commands/window.js'),
  },
  {
    name: 'sim',
    summary: 'scenarios in virtual time: congestion, loss and pauses at 40 or 100 Gb/s',
    load: () => import('./commands/sim.js'),
  },
  {
    name: 'disk',
    summary: 'disks for every program that knows NBD: in memory, in a file, behind another NBD server',
    load: () => import('./commands/disk.js'),
  },
  {
    name: 'fluid',
    summary: 'fluid models of DCQCN and TIMELY: fixed point, phase margin, queue swing',
    load: () => import('./commands/fluid.js'),
  },
  {
    name: 'dashboard',
    summary: 'a web page that shows a live lab, and lets one change it',
    load: () => import('./commands/dashboard.js'),
  },
  {
    name: 'report',
    summary: 'one page with plots and tables from the JSON documents of a folder',
    load: () => import('./commands/report.js'),
  },
  {
    name: 'completion',
    summary: 'a script that completes commands and options in bash, zsh or fish',
    load: () => import('./commands/completion.js'),
  },
];
