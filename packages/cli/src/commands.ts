/**
 * The list of commands. Only the command to run is loaded, so that `rocev2 --help` does not load all of them.
 */

import type { CliIo } from '@rocev2/command';
import type { Command } from 'commander';

/** Adds the command to the program. `wholeProgram` makes a program with all commands, for commands that describe them. */
export type Register = (program: Command, io: CliIo, wholeProgram: () => Promise<Command>) => void;

/** A command that is not loaded yet. */
export interface CommandEntry {
  /** Name on the command line. */
  readonly name: string;
  /** One line for `rocev2 --help`. */
  readonly summary: string;
  /** Imports the module that registers the command. */
  load(): Promise<{ readonly register: Register }>;
}

/** In the order of `rocev2 --help`. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'demo',
    summary: 'two endpoints and a switch on this machine: every operation verified, then the livelock',
    load: () => import('@rocev2/lab/commands/demo'),
  },
  {
    name: 'bw',
    summary: 'throughput of WRITE, READ, SEND or atomics between two endpoints',
    load: () => import('./commands/bw-command.js'),
  },
  {
    name: 'lat',
    summary: 'latency of WRITE, READ, SEND or atomics between two endpoints',
    load: () => import('./commands/lat-command.js'),
  },
  {
    name: 'livelock',
    summary: 'the SIGCOMM 2016 experiment: why go-back-0 delivers nothing when one packet in 256 is lost',
    load: () => import('@rocev2/lab/commands/livelock'),
  },
  {
    name: 'switch',
    summary: 'a software Ethernet switch on UDP sockets, with fault rules',
    load: () => import('@rocev2/lab/commands/switch'),
  },
  {
    name: 'wire',
    summary: 'a wire between two foreign peers: fault rules, capture and audit while they talk',
    load: () => import('@rocev2/lab/commands/wire'),
  },
  {
    name: 'decode',
    summary: 'print the RoCEv2 packets of a capture or the events of a trace, and a summary of each flow',
    load: () => import('@rocev2/inspect/commands/decode'),
  },
  {
    name: 'audit',
    summary: 'judge a capture by the rules of the specification, from any NIC or switch',
    load: () => import('@rocev2/inspect/commands/audit'),
  },
  {
    name: 'conform',
    summary: 'play a peer against a target, and judge its answers by the rules of the specification',
    load: () => import('@rocev2/inspect/commands/conform'),
  },
  {
    name: 'info',
    summary: 'what this machine has for RDMA: addresses, sockets, checksums, limits',
    load: () => import('./commands/info-command.js'),
  },
  {
    name: 'doctor',
    summary: 'what is wrong between this host and another: reachability, loss, MTU, DSCP, ICRC, timeouts',
    load: () => import('@rocev2/inspect/commands/doctor'),
  },
  {
    name: 'icrc',
    summary: 'compute the ICRC of a packet in hex',
    load: () => import('@rocev2/inspect/commands/icrc'),
  },
  {
    name: 'estats',
    summary: 'inspect running endpoints: latency by stage, histograms, dumps, who owns the latency',
    load: () => import('@rocev2/dashboard/commands/estats'),
  },
  {
    name: 'pingpong',
    summary: 'exchange messages with ibv_rc_pingpong, ibv_uc_pingpong or ibv_ud_pingpong',
    load: () => import('./commands/pingpong-command.js'),
  },
  {
    name: 'srq-pingpong',
    summary: 'exchange messages with ibv_srq_pingpong, over queue pairs that share a receive queue',
    load: () => import('./commands/srq-pingpong-command.js'),
  },
  {
    name: 'rping',
    summary: 'ping over rdma_cm; the peer is rping',
    load: () => import('./commands/rping-command.js'),
  },
  {
    name: 'ucmatose',
    summary: 'connect over rdma_cm and send messages both ways; the peer is ucmatose',
    load: () => import('./commands/ucmatose-command.js'),
  },
  {
    name: 'cmtime',
    summary: 'measure how long connections over rdma_cm take; the peer is cmtime',
    load: () => import('./commands/cmtime-command.js'),
  },
  {
    name: 'udaddy',
    summary: 'datagrams both ways with udaddy, to a queue pair that rdma_cm has found',
    load: () => import('./commands/udaddy-command.js'),
  },
  {
    name: 'window',
    summary: 'compare a sliding-window memory pool with a memory request before every write',
    load: () => import('./commands/window-command.js'),
  },
  {
    name: 'sim',
    summary: 'scenarios in virtual time: congestion, loss and pauses at 40 or 100 Gb/s',
    load: () => import('@rocev2/lab/commands/sim'),
  },
  {
    name: 'disk',
    summary: 'disks for any NBD client: in memory, in a file, or behind another NBD server',
    load: () => import('./commands/disk-command.js'),
  },
  {
    name: 'nvme',
    summary: 'an NVMe over Fabrics target over RDMA and TCP, for the Linux kernel and others',
    load: () => import('@rocev2/nvme/commands/nvme'),
  },
  {
    name: 'kv',
    summary: 'a cache that other programs read while its owner is busy',
    load: () => import('@rocev2/kv/commands/kv'),
  },
  {
    name: 'extents',
    summary: 'streams of records on several nodes, which may die',
    load: () => import('@rocev2/extents/commands/extents'),
  },
  {
    name: 'fluid',
    summary: 'fluid models of DCQCN and TIMELY: fixed point, phase margin, queue swing',
    load: () => import('@rocev2/lab/commands/fluid'),
  },
  {
    name: 'dashboard',
    summary: 'a web page to watch and change a live lab',
    load: () => import('@rocev2/dashboard/commands/dashboard'),
  },
  {
    name: 'report',
    summary: 'one HTML page with plots and tables from a folder of JSON documents',
    load: () => import('@rocev2/lab/commands/report'),
  },
  {
    name: 'completion',
    summary: 'print a completion script for bash, zsh or fish',
    load: () => import('./commands/completion-command.js'),
  },
];
