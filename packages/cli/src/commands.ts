/** The list of commands. Only the command to run is loaded, which keeps `rocev2 --help` fast. */

import type { CommandEntry } from '@rocev2/command';

type Entry = readonly [name: CommandEntry['name'], summary: CommandEntry['summary'], load: CommandEntry['load']];

function grouped(group: CommandEntry['group'], ...entries: readonly Entry[]): CommandEntry[] {
  return entries.map(([name, summary, load]) => ({ name, group, summary, load }));
}

export const COMMANDS: readonly CommandEntry[] = [
  ...grouped(
    'Run and measure',
    [
      'demo',
      'show the essentials on this machine: every operation verified under loss, then a livelock',
      () => import('@rocev2/lab/commands/demo'),
    ],
    [
      'bw',
      'measure the throughput of WRITE, READ, SEND or atomics between two endpoints',
      () => import('./commands/bw-command.js'),
    ],
    [
      'lat',
      'measure the latency of WRITE, READ, SEND or atomics between two endpoints',
      () => import('./commands/lat-command.js'),
    ],
    [
      'window',
      'compare a sliding-window memory pool with a request for memory before each write',
      () => import('./commands/window-command.js'),
    ],
  ),
  ...grouped(
    'Break a network',
    [
      'livelock',
      'repeat the SIGCOMM 2016 experiment: go-back-0 delivers nothing at a loss of 1 in 256 packets',
      () => import('@rocev2/lab/commands/livelock'),
    ],
    [
      'switch',
      'run a software Ethernet switch on UDP sockets, with fault rules, ECN and PFC',
      () => import('@rocev2/lab/commands/switch'),
    ],
    [
      'wire',
      'forward packets between two other peers: drop, delay, capture and audit them',
      () => import('@rocev2/lab/commands/wire'),
    ],
  ),
  ...grouped(
    'Monitor and inspect',
    [
      'dashboard',
      'monitor running servers and endpoints (--attach), or a live lab, on a web page',
      () => import('@rocev2/dashboard/commands/dashboard'),
    ],
    [
      'estats',
      'monitor running servers and endpoints in the terminal: traffic, latency, causes of delay',
      () => import('@rocev2/dashboard/commands/estats'),
    ],
    [
      'doctor',
      'find faults between this host and another: reachability, loss, MTU, DSCP, timeouts',
      () => import('@rocev2/inspect/commands/doctor'),
    ],
    [
      'info',
      'show the RDMA capabilities of this machine: addresses, sockets, checksums, limits',
      () => import('./commands/info-command.js'),
    ],
    [
      'decode',
      'print the packets of a capture or the events of a trace, and a summary of each flow',
      () => import('@rocev2/inspect/commands/decode'),
    ],
    [
      'audit',
      'check a capture, of any NIC or switch, against the rules of the specification',
      () => import('@rocev2/inspect/commands/audit'),
    ],
    [
      'conform',
      'test a peer: send it requests and check its responses against the specification',
      () => import('@rocev2/inspect/commands/conform'),
    ],
    ['icrc', 'compute the ICRC of a packet in hex', () => import('@rocev2/inspect/commands/icrc')],
  ),
  ...grouped(
    'Storage',
    [
      'disk',
      'serve disks over RDMA, with failover to TCP, to any NBD client',
      () => import('./commands/disk-command.js'),
    ],
    [
      'nvme',
      'serve disks to NVMe over Fabrics hosts such as the Linux kernel, over RDMA and TCP',
      () => import('@rocev2/nvme/commands/nvme'),
    ],
    [
      'extents',
      'store replicated streams of records, and disks, on several nodes that may fail',
      () => import('@rocev2/extents/commands/extents'),
    ],
  ),
  ...grouped('Shared data', [
    'kv',
    'share a key-value cache that other programs read even while its owner is busy',
    () => import('@rocev2/kv/commands/kv'),
  ]),
  ...grouped(
    'Interoperate with stock tools',
    [
      'verbs',
      'run an unmodified program of libibverbs, such as ib_write_bw, without RDMA hardware',
      () => import('@rocev2/ibverbs/commands/verbs'),
    ],
    [
      'pingpong',
      'exchange messages with ibv_rc_pingpong, ibv_uc_pingpong or ibv_ud_pingpong',
      () => import('./commands/pingpong-command.js'),
    ],
    [
      'srq-pingpong',
      'exchange messages with ibv_srq_pingpong: queue pairs that share a receive queue',
      () => import('./commands/srq-pingpong-command.js'),
    ],
    ['rping', 'ping over rdma_cm; the peer is rping', () => import('./commands/rping-command.js')],
    [
      'ucmatose',
      'connect over rdma_cm and send messages both ways; the peer is ucmatose',
      () => import('./commands/ucmatose-command.js'),
    ],
    [
      'cmtime',
      'measure how long connection setup over rdma_cm takes; the peer is cmtime',
      () => import('./commands/cmtime-command.js'),
    ],
    [
      'udaddy',
      'resolve a UD queue pair by rdma_cm and exchange datagrams; the peer is udaddy',
      () => import('./commands/udaddy-command.js'),
    ],
  ),
  ...grouped(
    'Lab',
    [
      'sim',
      'simulate networks in virtual time: congestion, loss and pauses at 40 or 100 Gb/s',
      () => import('@rocev2/lab/commands/sim'),
    ],
    [
      'fluid',
      'compute fluid models of DCQCN and TIMELY: fixed point, phase margin, queue oscillation',
      () => import('@rocev2/lab/commands/fluid'),
    ],
    [
      'report',
      'make one HTML page with plots and tables from a folder of JSON documents',
      () => import('@rocev2/lab/commands/report'),
    ],
  ),
  ...grouped('Shell', [
    'completion',
    'print a completion script for bash, zsh or fish',
    () => import('./commands/completion-command.js'),
  ]),
];
