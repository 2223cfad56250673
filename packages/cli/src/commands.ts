/** The list of commands. Only the command to run is loaded, so that `rocev2 --help` does not load all of them. */

import type { CommandEntry } from '@rocev2/command';

/** In the order of `rocev2 --help`. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'demo',
    group: 'Run and measure',
    summary: 'show the essentials on this machine: every operation verified under loss, then a livelock',
    load: () => import('@rocev2/lab/commands/demo'),
  },
  {
    name: 'bw',
    group: 'Run and measure',
    summary: 'measure the throughput of WRITE, READ, SEND or atomics between two endpoints',
    load: () => import('./commands/bw-command.js'),
  },
  {
    name: 'lat',
    group: 'Run and measure',
    summary: 'measure the latency of WRITE, READ, SEND or atomics between two endpoints',
    load: () => import('./commands/lat-command.js'),
  },
  {
    name: 'window',
    group: 'Run and measure',
    summary: 'compare a sliding-window memory pool with a request for memory before each write',
    load: () => import('./commands/window-command.js'),
  },
  {
    name: 'livelock',
    group: 'Break a network',
    summary: 'repeat the SIGCOMM 2016 experiment: go-back-0 delivers nothing at a loss of 1 in 256 packets',
    load: () => import('@rocev2/lab/commands/livelock'),
  },
  {
    name: 'switch',
    group: 'Break a network',
    summary: 'run a software Ethernet switch on UDP sockets, with fault rules, ECN and PFC',
    load: () => import('@rocev2/lab/commands/switch'),
  },
  {
    name: 'wire',
    group: 'Break a network',
    summary: 'connect two other peers: forward, drop, delay, capture and audit their packets',
    load: () => import('@rocev2/lab/commands/wire'),
  },
  {
    name: 'dashboard',
    group: 'Inspect',
    summary: 'monitor running servers and endpoints (--attach), or a live lab, on a web page',
    load: () => import('@rocev2/dashboard/commands/dashboard'),
  },
  {
    name: 'estats',
    group: 'Inspect',
    summary: 'monitor running servers and endpoints in the terminal: traffic, latency, causes of delay',
    load: () => import('@rocev2/dashboard/commands/estats'),
  },
  {
    name: 'doctor',
    group: 'Inspect',
    summary: 'find what is wrong between this host and another: reachability, loss, MTU, DSCP, timeouts',
    load: () => import('@rocev2/inspect/commands/doctor'),
  },
  {
    name: 'info',
    group: 'Inspect',
    summary: 'show what this machine offers for RDMA: addresses, sockets, checksums, limits',
    load: () => import('./commands/info-command.js'),
  },
  {
    name: 'decode',
    group: 'Inspect',
    summary: 'print the packets of a capture or the events of a trace, and a summary of each flow',
    load: () => import('@rocev2/inspect/commands/decode'),
  },
  {
    name: 'audit',
    group: 'Inspect',
    summary: 'check a capture, of any NIC or switch, against the rules of the specification',
    load: () => import('@rocev2/inspect/commands/audit'),
  },
  {
    name: 'conform',
    group: 'Inspect',
    summary: 'test a peer: send it requests and check its responses against the specification',
    load: () => import('@rocev2/inspect/commands/conform'),
  },
  {
    name: 'icrc',
    group: 'Inspect',
    summary: 'compute the ICRC of a packet in hex',
    load: () => import('@rocev2/inspect/commands/icrc'),
  },
  {
    name: 'disk',
    group: 'Storage',
    summary: 'serve disks over RDMA, with failover to TCP, to any NBD client',
    load: () => import('./commands/disk-command.js'),
  },
  {
    name: 'nvme',
    group: 'Storage',
    summary: 'serve disks to NVMe over Fabrics hosts such as the Linux kernel, over RDMA and TCP',
    load: () => import('@rocev2/nvme/commands/nvme'),
  },
  {
    name: 'extents',
    group: 'Storage',
    summary: 'store replicated streams of records, and disks, on several nodes that may fail',
    load: () => import('@rocev2/extents/commands/extents'),
  },
  {
    name: 'kv',
    group: 'Shared data',
    summary: 'share a key-value cache that other programs read even while its owner is busy',
    load: () => import('@rocev2/kv/commands/kv'),
  },
  {
    name: 'pingpong',
    group: 'Interoperate with stock tools',
    summary: 'exchange messages with ibv_rc_pingpong, ibv_uc_pingpong or ibv_ud_pingpong',
    load: () => import('./commands/pingpong-command.js'),
  },
  {
    name: 'srq-pingpong',
    group: 'Interoperate with stock tools',
    summary: 'exchange messages with ibv_srq_pingpong: queue pairs that share a receive queue',
    load: () => import('./commands/srq-pingpong-command.js'),
  },
  {
    name: 'rping',
    group: 'Interoperate with stock tools',
    summary: 'ping over rdma_cm; the peer is rping',
    load: () => import('./commands/rping-command.js'),
  },
  {
    name: 'ucmatose',
    group: 'Interoperate with stock tools',
    summary: 'connect over rdma_cm and send messages both ways; the peer is ucmatose',
    load: () => import('./commands/ucmatose-command.js'),
  },
  {
    name: 'cmtime',
    group: 'Interoperate with stock tools',
    summary: 'measure how long connection setup over rdma_cm takes; the peer is cmtime',
    load: () => import('./commands/cmtime-command.js'),
  },
  {
    name: 'udaddy',
    group: 'Interoperate with stock tools',
    summary: 'resolve a UD queue pair by rdma_cm and exchange datagrams; the peer is udaddy',
    load: () => import('./commands/udaddy-command.js'),
  },
  {
    name: 'sim',
    group: 'Lab',
    summary: 'simulate networks in virtual time: congestion, loss and pauses at 40 or 100 Gb/s',
    load: () => import('@rocev2/lab/commands/sim'),
  },
  {
    name: 'fluid',
    group: 'Lab',
    summary: 'compute fluid models of DCQCN and TIMELY: fixed point, phase margin, queue oscillation',
    load: () => import('@rocev2/lab/commands/fluid'),
  },
  {
    name: 'report',
    group: 'Lab',
    summary: 'make one HTML page with plots and tables from a folder of JSON documents',
    load: () => import('@rocev2/lab/commands/report'),
  },
  {
    name: 'completion',
    group: 'Shell',
    summary: 'print a completion script for bash, zsh or fish',
    load: () => import('./commands/completion-command.js'),
  },
];
