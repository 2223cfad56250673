/** How `bw` and `lat` do their parts of a test, whichever exchange connected it. */

import {
  type CliIo,
  type DocumentKind,
  defineDocument,
  type Output,
  type Progress,
  SILENT_PROGRESS,
} from '@rocev2/command';
import type { Endpoint } from './endpoint.js';
import type { Interval } from './intervals.js';
import { answerLatency, type LossRule, measureLatency, NOTHING_IS_LOST, type Waiting } from './latency.js';
import { type PumpOptions, pump } from './pump.js';
import { intervalLine, printBandwidth, printLatency, type TransferDocument, type TransferResult } from './result.js';
import { drainReceives, type Tally, type TrafficEndpoint } from './run.js';
import type { TransferOptions } from './transfer-options.js';

/** How one measurement is made. */
export interface Measurement {
  /** Of this side. */
  readonly options: TransferOptions;
  /** How long an answer is waited for. */
  readonly loss: LossRule;
  /** Its `interrupted` ends the measurement early. */
  readonly io: CliIo;
  /** What the user watches. */
  readonly progress: Progress;
  /** Hears of each interval, where the options ask for them. */
  onInterval(interval: Interval): void;
}

/** How a tool does its part. */
export interface TransferTool {
  /** The command. */
  readonly name: 'bw' | 'lat';
  /** What it prints with --json. */
  readonly document: DocumentKind<TransferDocument>;
  /** As perftest heads its output. */
  readonly title: 'BW' | 'Latency';
  /** The side that has the word: the client, and with `-b` the server, too. */
  measure(endpoint: TrafficEndpoint, how: Measurement): Promise<Tally>;
  /** The side that answers; the function it returns serves one round. */
  answer(endpoint: Endpoint, options: TransferOptions): (round: Endpoint) => Promise<unknown>;
  /** The results for people, one a size. */
  print(output: Output, results: readonly TransferResult[], options: TransferOptions): void;
}

/** What the user watches: a bar, and lines of intervals. */
export function aloud(how: { options: TransferOptions; loss: LossRule; output: Output }): Measurement {
  const { options, loss, output } = how;
  const hasLines = intervalNsOf(options) > 0;
  return {
    options,
    loss,
    io: output.io,
    progress: hasLines ? SILENT_PROGRESS : output.progress(100),
    onInterval: (interval) => output.line(intervalLine(interval, options)),
  };
}

/** perftest's, where a run without end says nothing else. */
const ENDLESS_INTERVAL_NS = 5e9;

function intervalNsOf({ interval, runInfinitely, duration }: TransferOptions): number {
  if (interval !== undefined) return interval;
  return runInfinitely === true ? (duration ?? ENDLESS_INTERVAL_NS) : 0;
}

/** How the options have messages posted. */
export function pumpOptionsOf(options: TransferOptions, onInterval: (interval: Interval) => void): PumpOptions {
  const { txDepth, postList, cqMod, noPeak } = options;
  return {
    depth: txDepth,
    postList,
    cqMod: Math.min(cqMod, txDepth),
    wantsPeak: noPeak !== true,
    intervalNs: intervalNsOf(options),
    onInterval,
  };
}

/** `bw`. */
export const bandwidth: TransferTool = {
  name: 'bw',
  document: defineDocument<TransferDocument>('bw'),
  title: 'BW',
  measure: async (endpoint, { options, io, progress, onInterval }) => {
    try {
      return await pump(endpoint, io.interrupted, pumpOptionsOf(options, onInterval), progress);
    } finally {
      progress.stop();
    }
  },
  answer: (endpoint) => {
    const drained = endpoint.plan.op === 'send' ? drainReceives(endpoint) : new Promise(() => {});
    drained.catch(() => {}); // Whoever serves a round hears of it.
    return () => drained;
  },
  print: printBandwidth,
};

/** As the options have a latency test wait. */
export function waitingOf({ events }: TransferOptions): Waiting {
  return events === true ? 'events' : 'poll';
}

/** `lat`. */
export const latency: TransferTool = {
  name: 'lat',
  document: defineDocument<TransferDocument>('lat'),
  title: 'Latency',
  measure: async (endpoint, { options, io, loss, progress }) => {
    try {
      return await measureLatency(endpoint, io, waitingOf(options), loss, progress);
    } finally {
      progress.stop();
    }
  },
  // However long the client's next message takes: its end is the end of the round.
  answer: (_, options) => (round) => answerLatency(round, waitingOf(options), NOTHING_IS_LOST),
  print: printLatency,
};
