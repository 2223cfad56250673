/** What the options of `rocev2 bw` and `rocev2 lat` say. */

import type { RateControlFlags } from '@rocev2/command';
import type { EndpointOptions } from './endpoint.js';

/** Options of both commands, in the program's units. */
export interface TransferOptions extends EndpointOptions, RateControlFlags {
  /** Size of a message in bytes. */
  readonly size: number;
  /** UD: the size was not given, so it is the path MTU. */
  readonly mayShrink?: true;
  /** Messages on each queue pair. */
  readonly iters: number;
  /** Nanoseconds to run for, instead of `iters`. */
  readonly duration?: number;
  /** Queue pairs. */
  readonly qp: number;
  /** Every power of two from 2 bytes to `size`. */
  readonly all?: true;
  /** Run until Ctrl-C; `duration` is then the time between two lines. */
  readonly runInfinitely?: true;
  /** Both sides send. */
  readonly bidirectional?: true;
  /** Messages posted with one doorbell. */
  readonly postList: number;
  /** Every nth message has a completion. */
  readonly cqMod: number;
  /** Do not compute the peak. */
  readonly noPeak?: true;
  /** Gb/s instead of MiB/s. */
  readonly reportGbits?: true;
  /** Report the processor load. */
  readonly cpuUtil?: true;
  /** Lowest acceptable average, in the unit of the report. */
  readonly limitBw?: number;
  /** Lowest acceptable message rate, in millions per second. */
  readonly limitMsgrate?: number;
  /** Nanoseconds between two lines of progress. */
  readonly interval?: number;
  /** Sleep on completion events. */
  readonly events?: true;
  /** The other side is perftest. */
  readonly perftest?: true;
  /** With perftest: connect through RDMA CM. */
  readonly rdmaCm?: true;
  /** Print one JSON document. */
  readonly json?: true;
}
