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
import { BANDWIDTH_TABLE, intervalLine, LATENCY_TABLE, type ResultTable, type TransferDocument } from './result.js';
import type { TransferOptions } from './transfer-options.js';
import { drainReceives, type RoundTally, type TrafficEndpoint } from './transfer-round.js';

export interface Measurement {
  readonly options: TransferOptions;
  readonly loss: LossRule;
  readonly io: CliIo;
  readonly progress: Progress;
  onInterval(interval: Interval): void;
}

export interface TransferTool {
  readonly name: 'bw' | 'lat';
  /** What it prints with --json. */
  readonly document: DocumentKind<TransferDocument>;
  readonly title: 'BW' | 'Latency';
  measure(endpoint: TrafficEndpoint, how: Measurement): Promise<RoundTally>;
  answer(endpoint: Endpoint, options: TransferOptions): (round: Endpoint) => Promise<unknown>;
  readonly table: ResultTable;
}

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

const ENDLESS_INTERVAL_NS = 5e9;

function intervalNsOf({ interval, runInfinitely, duration }: TransferOptions): number {
  if (interval !== undefined) return interval;
  return runInfinitely === true ? (duration ?? ENDLESS_INTERVAL_NS) : 0;
}

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
    drained.catch(() => {});
    return () => drained;
  },
  table: BANDWIDTH_TABLE,
};

export function waitingOf({ events }: TransferOptions): Waiting {
  return events === true ? 'events' : 'poll';
}

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
  answer: (_, options) => (round) => answerLatency(round, waitingOf(options), NOTHING_IS_LOST),
  table: LATENCY_TABLE,
};
