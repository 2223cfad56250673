import { CommandFailure, EXIT_FAILED, type LatencyNs, type Output, rightAligned, wireWords } from '@rocev2/command';
import type { Agreement, TransportName } from 'rocev2/internal/cm';
import type { RateControlName } from 'rocev2/internal/dcqcn';
import { chooseIo } from 'rocev2/internal/driver';
import type { CounterName } from 'rocev2/internal/memory';
import type { EngineName } from 'rocev2/internal/verbs';
import type { Endpoint, TransferFlow, TransferOp } from './endpoint.js';
import { type DirectionFigures, figuresOf, type Measured } from './figures.js';
import type { Interval } from './intervals.js';
import type { TransferOptions } from './transfer-options.js';

/**
 * The fields of `bw --json` and `lat --json`, the same on both sides. The client measures; a rocev2 server gets the
 * figures from it.
 */
export interface TransferDocument extends TransferResult {
  /** Role of this side. */
  readonly role: 'client' | 'server';
  /**
   * Names of fields that this side cannot know, because perftest does not send them: they are null or false. Empty
   * between two rocev2 programs.
   */
  readonly unknown: ReadonlyArray<keyof TransferResult>;
  /** With --all: the result of each size. The other fields are those of the last size. */
  readonly sizes?: readonly TransferResult[];
  /** With --perftest: why the test did not finish; missing if it did. */
  readonly unfinished?: string;
}

/** The fields of `bw --json` and `lat --json`. */
export interface TransferResult {
  /** Operation of the test. */
  readonly op: TransferOp;
  /** Transport of the queue pairs. */
  readonly transport: TransportName;
  /** Size of a message in bytes. */
  readonly sizeBytes: number;
  /** Both sides sent at the same time. */
  readonly bidirectional: boolean;
  /** Messages that arrived, as far as this side knows (see `lost`). Latency test: messages that were answered. */
  readonly iterations: number;
  /** Messages that were lost or not answered. Null: only the receiver knows; `iterations` then counts messages sent. */
  readonly lost: number | null;
  /** Payload of these messages in both directions together. */
  readonly bytes: number;
  /** Duration; of two directions, the longer one. */
  readonly seconds: number;
  /** `bytes` in bits, divided by `seconds`. */
  readonly goodputBps: number;
  /** `iterations` divided by `seconds`. */
  readonly messagesPerSecond: number;
  /**
   * Highest rate of any run of consecutive messages, as perftest defines its peak, in bits per second. Null: not
   * computed.
   */
  readonly peakBps: number | null;
  /** What each side sent, this side first. Null: only one side sent. */
  readonly directions: readonly DirectionFigures[] | null;
  /** What this side moved in each interval of `--interval`. */
  readonly intervals: readonly Interval[];
  /** Load of all processors of this host in percent, with `--cpu_util`. */
  readonly cpuPercent: number | null;
  /** Time from post to completion in a bandwidth test; one-way time in a latency test. Null: not measured. */
  readonly latencyNs: LatencyNs | null;
  /** The data was checked and is correct. */
  readonly verified: boolean;
  /** Recovery scheme; `none` if the transport does not retransmit. */
  readonly recovery: string;
  /** Rate control of the data sender. */
  readonly cc: RateControlName;
  /** How datagrams were sent and received. */
  readonly io: 'dgram' | 'mmsg' | 'shm';
  /** Where the NIC ran. */
  readonly engine: EngineName;
  /** Path MTU in bytes. */
  readonly mtu: number;
  /** Queue pairs. */
  readonly qps: number;
  /** Share of the data packets sent by this side that were not retransmissions, 0..1. Null: it sent none. */
  readonly usefulShare: number | null;
  /** Counters of this side's NIC that are not 0. */
  readonly counters: Partial<Record<CounterName, number>>;
}

export interface RoundOutcome {
  readonly round: Pick<Endpoint, 'device' | 'plan'> & {
    readonly flows: ReadonlyArray<Pick<TransferFlow, 'agreement'>>;
  };
  readonly measured: Measured;
  readonly intervals: readonly Interval[];
  readonly verified: boolean;
  readonly cpuPercent: number;
}

export function resultOf(options: TransferOptions, outcome: RoundOutcome): TransferResult {
  const { round, measured, intervals, verified, cpuPercent } = outcome;
  const { plan, flows } = round;
  return {
    op: plan.op,
    ...figuresOf(plan, measured, intervals),
    cpuPercent: options.cpuUtil === true ? cpuPercent : null,
    verified: verified && measured.iterations > 0,
    recovery: plan.transport === 'rc' ? options.recovery : 'none',
    io: ioOf(options, flows[0].agreement),
    engine: options.engine,
    mtu: flows[0].agreement.mtu,
    usefulShare: usefulShareOf(round),
    counters: movedCounters(round),
  };
}

function usefulShareOf({ device }: Pick<Endpoint, 'device'>): number | null {
  const { tx_data_packets: sent, tx_retransmitted: again } = device.counters();
  return sent === 0 ? null : Math.max(0, sent - again) / sent;
}

function ioOf(options: TransferOptions, { sharesMemory }: Pick<Agreement, 'sharesMemory'>): TransferResult['io'] {
  if (sharesMemory) return 'shm';
  return chooseIo(options.io).io === 'dgram' ? 'dgram' : 'mmsg';
}

export function documentOf(
  role: 'client' | 'server',
  results: readonly TransferResult[],
  isOfAllSizes: boolean,
  unknown: TransferDocument['unknown'] = [],
): TransferDocument {
  return { role, ...results.at(-1)!, unknown, ...(isOfAllSizes && { sizes: results }) };
}

export function movedCounters(endpoint: Pick<Endpoint, 'device'>): Partial<Record<CounterName, number>> {
  const all = Object.entries(endpoint.device.counters()) as Array<[CounterName, number]>;
  return Object.fromEntries(all.filter(([, value]) => value !== 0));
}

const OP_TITLES: Record<TransferOp, string> = {
  write: 'RDMA_Write',
  read: 'RDMA_Read',
  send: 'Send',
  atomic: 'Atomic_FETCH_AND_ADD',
};
const RULE = '-'.repeat(87);

const hex = (value: number | bigint, digits: number) => `0x${value.toString(16).padStart(digits, '0')}`;

export function printHead(output: Output, endpoint: Endpoint, title: 'BW' | 'Latency'): void {
  const { plan, flows, device, region } = endpoint;
  output.line(RULE);
  output.line(`                    ${OP_TITLES[plan.op]} ${title} Test`);
  output.line(` Port           : ${device.portDescription}`);
  const wire = wireWords(flows[0].agreement, plan.op !== 'send');
  if (wire !== undefined) output.line(` Wire           : ${wire}`);
  output.line(
    `${` Number of qps  : ${plan.qps}`.padEnd(33)}Transport type : ${plan.transport.toUpperCase()} over RoCEv2`,
  );
  const { mtu, recovery } = flows[0].agreement;
  const repair = plan.transport === 'rc' ? recovery : 'none: lost packets are not retransmitted';
  output.line(`${` Mtu            : ${mtu}[B]`.padEnd(33)}Recovery       : ${repair}`);
  output.line(RULE);
  for (const { qp, agreement, offset } of flows) {
    output.line(
      ` local address:  QPN ${hex(qp.qpn, 6)} RKey ${hex(region.rkey, 8)} VAddr ${hex(region.addr + BigInt(offset), 12)} on ${device.address}`,
    );
    const remote = agreement.region!;
    output.line(
      ` remote address: QPN ${hex(agreement.remoteQpn, 6)} RKey ${hex(remote.rkey, 8)} VAddr ${hex(remote.addr, 12)} on ${agreement.peer}`,
    );
  }
  output.line(RULE);
}

const MIB = 1024 * 1024;

function bandwidthIn({ reportGbits }: ReportUnit, bps: number): number {
  return reportGbits === true ? bps / 1e9 : bps / 8 / MIB;
}

export interface ReportUnit {
  readonly reportGbits?: true;
}

/** What a tool prints of each size. */
export interface ResultTable {
  titles(options: TableOptions): string[];
  row(result: TransferResult, options: TableOptions): (string | number)[];
}

export interface TableOptions extends ReportUnit {
  readonly cpuUtil?: true;
}

export const BANDWIDTH_TABLE: ResultTable = {
  titles: ({ reportGbits, cpuUtil }) => {
    const unit = reportGbits === true ? 'Gb/sec' : 'MiB/sec';
    return [
      '#bytes',
      '#iterations',
      `BW peak[${unit}]`,
      `BW average[${unit}]`,
      ...(reportGbits === true ? [] : ['BW average[Gb/sec]']),
      'MsgRate[Mpps]',
      ...(cpuUtil === true ? ['CPU_Util[%]'] : []),
    ];
  },
  row: (result, options) => {
    const digits = options.reportGbits === true ? 3 : 2;
    return [
      result.sizeBytes,
      result.iterations,
      bandwidthIn(options, result.peakBps ?? 0).toFixed(digits),
      bandwidthIn(options, result.goodputBps).toFixed(digits),
      ...(options.reportGbits === true ? [] : [(result.goodputBps / 1e9).toFixed(3)]),
      (result.messagesPerSecond / 1e6).toFixed(6),
      ...(options.cpuUtil === true ? [(result.cpuPercent ?? 0).toFixed(2)] : []),
    ];
  },
};

const SIZE_WIDTH = String(8 * MIB).length;

/** Prints the rows of several sizes as they are measured. The last call prints the end of the output. */
export function resultPrinter(
  output: Output,
  { titles, row }: ResultTable,
  options: TableOptions,
): { add(result: TransferResult): void; end(): void } {
  const results: TransferResult[] = [];
  let addRow: ((row: readonly (string | number)[]) => void) | undefined;
  return {
    add: (result) => {
      results.push(result);
      addRow ??= output.growingTable(rightAligned(...titles(options)), SIZE_WIDTH);
      addRow(row(result, options));
    },
    end: () => printTail(output, results),
  };
}

export function intervalLine({ fromSeconds, toSeconds, messages, goodputBps }: Interval, options: ReportUnit): string {
  const span = `${fromSeconds.toFixed(2)}-${toSeconds.toFixed(2)} s`;
  const unit = options.reportGbits === true ? 'Gb/sec' : 'MiB/sec';
  return ` ${span.padEnd(18)} ${String(messages).padStart(9)} messages  ${bandwidthIn(options, goodputBps).toFixed(2).padStart(9)} ${unit}`;
}

export function expectLimits(
  { goodputBps, messagesPerSecond }: Pick<TransferResult, 'goodputBps' | 'messagesPerSecond'>,
  options: ReportUnit & { readonly limitBw?: number; readonly limitMsgrate?: number },
): void {
  const { limitBw = 0, limitMsgrate = 0 } = options;
  const bandwidth = bandwidthIn(options, goodputBps);
  if (bandwidth < limitBw) {
    const unit = options.reportGbits === true ? 'Gb/s' : 'MiB/s';
    throw new CommandFailure(EXIT_FAILED, `the bandwidth of ${bandwidth.toFixed(2)} ${unit} is below the limit of -w`);
  }
  const rate = messagesPerSecond / 1e6;
  if (rate < limitMsgrate) {
    throw new CommandFailure(EXIT_FAILED, `the rate of ${rate.toFixed(6)} million messages/s is below the limit of -y`);
  }
}

export const LATENCY_TABLE: ResultTable = {
  titles: () => [
    '#bytes',
    '#iterations',
    't_min[usec]',
    't_typical[usec]',
    '90%[usec]',
    '99%[usec]',
    '99.9%[usec]',
    't_max[usec]',
  ],
  row: ({ sizeBytes, iterations, latencyNs }) => {
    const us = (ns: number | undefined) => (ns === undefined ? '-' : (ns / 1000).toFixed(2));
    const { min, p50, p90, p99, p999, max } = latencyNs ?? {};
    return [sizeBytes, iterations, ...[min, p50, p90, p99, p999, max].map(us)];
  },
};

function printTail(output: Output, results: readonly TransferResult[]): void {
  const result = results.at(-1)!;
  const { counters } = result;
  const { colors } = output;
  const verified = results.every((each) => each.verified);
  const troubles: CounterName[] = [
    'tx_retransmitted',
    'packet_seq_err',
    'local_ack_timeout_err',
    'rnr_nak_received',
    'rx_icrc_errors',
  ];
  const seen = troubles.filter((name) => (counters[name] ?? 0) > 0).map((name) => `${name} ${counters[name]}`);
  const repairs = seen.length === 0 ? ['no retransmissions'] : seen;
  output.line(RULE);
  if (result.iterations === 0) output.line(` 0 messages, ${counters.tx_retransmitted ?? 0} packets retransmitted`);
  output.line(
    ` data ${verified ? colors.green('verified') : colors.yellow('not verified')}; ${(result.transport === 'rc' ? repairs : [lossText(result)]).join(', ')}`,
  );
}

function lossText({ iterations, lost }: TransferResult): string {
  if (lost === null) return `${iterations} messages sent; only the receiver knows how many arrived`;
  return lost === 0 ? 'nothing lost' : `${lost} of ${iterations + lost} messages lost`;
}
