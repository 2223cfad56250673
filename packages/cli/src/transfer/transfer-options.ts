/** What the options of `rocev2 bw` and `rocev2 lat` say. */

import type { RateControlFlags } from '@rocev2/command';
import type { TransferEndpointOptions } from './endpoint.js';

export interface TransferOptions extends TransferEndpointOptions, RateControlFlags {
  /** Size of a message in bytes. */
  readonly size: number;
  readonly mayShrink?: true;
  readonly iters: number;
  readonly duration?: number;
  readonly qp: number;
  readonly all?: true;
  readonly runInfinitely?: true;
  readonly bidirectional?: true;
  readonly postList: number;
  readonly cqMod: number;
  readonly noPeak?: true;
  readonly reportGbits?: true;
  readonly cpuUtil?: true;
  readonly limitBw?: number;
  readonly limitMsgrate?: number;
  readonly interval?: number;
  readonly events?: true;
  readonly perftest?: true;
  readonly rdmaCm?: true;
  readonly json?: true;
}
