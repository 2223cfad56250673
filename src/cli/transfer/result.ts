/** The result of a transfer test, as JSON (the fields of design for all transfer tools) and as perftest prints it. */

import type { TransportName } from '../../cm/transport.js';
import type { RateControlName } from '../../dcqcn/schemes.js';
import type { CounterName } from '../../ring/counters.js';
import type { EngineName } from '../../verbs/open-device.js';
import type { Column, Output } from '../output.js';
import type { Endpoint, TransferOp, TransferPlan } from './endpoint.js';
import type { Tally } from './run.js';

/** Quantiles of the samples, in nanoseconds. */
export interface LatencyNs {
  /** Least sample. */
  readonly min: number;
  /** Median. */
  readonly p50: number;
  /** 90th percentile. */
  readonly p90: number;
  /** 99th percentile. */
  readonly p99: number;
  /** 99.9th percentile. */
  readonly p999: number;
  /** Largest sample. */
  readonly max: number;
}

/** The fields of `bw --json` and `lat --json`. */
export interface TransferResult {
  /** As asked for. */
  readonly op: TransferOp;
  /** Of the queue pairs. */
  readonly transport: TransportName;
  /** Bytes of a message. */
  readonly sizeBytes: number;
  /** Messages that arrived, as far as this side knows (`lost`); of a latency test those that were answered. */
  readonly iterations: number;
  /** Messages that were sent and did not arrive, or that nothing answered; null where only the receiver knows, and `iterations` were sent. */
  readonly lost: number | null;
  /** Payload of these messages. */
  readonly bytes: number;
  /** Time it took. */
  readonly seconds: number;
  /** `bytes` in bits, over `seconds`. */
  readonly goodputBps: number;
  /** `iterations` over `seconds`. */
  readonly messagesPerSecond: number;
  /** Null for `bw`. */
  readonly latencyNs: LatencyNs | null;
  /** The data was checked and right. */
  readonly verified: boolean;
  /** Recovery scheme; `none` where what is lost stays lost. */
  readonly recovery: string;
  /** Rate control of the data sender. */
  readonly cc: RateControlName;
  /** How datagrams got in and out. */
  readonly io: 'dgram' | 'mmsg';
  /** Where the NIC ran. */
  readonly engine: EngineName;
  /** Path MTU in bytes. */
  readonly mtu: number;
  /** Queue pairs. */
  readonly qps: number;
  /** Counters of this side's NIC that moved. */
  readonly counters: Partial<Record<CounterName, number>>;
}

/** Samples kept for percentiles; later ones of a longer test are left out. */
const LATENCY_SAMPLES_MAX = 1_000_000;

/** Latency samples in nanoseconds. */
export class LatencySamples {
  readonly #samples = new Float64Array(LATENCY_SAMPLES_MAX);
  #count = 0;

  /** One more; beyond a bound they are left out. */
  add(ns: number): void {
    if (this.#count < LATENCY_SAMPLES_MAX) this.#samples[this.#count++] = ns;
  }

  /** Null when there are no samples. */
  summary(): LatencyNs | null {
    if (this.#count === 0) return null;
    const sorted = this.#samples.slice(0, this.#count).sort();
    const at = (q: number) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))]);
    return {
      min: at(0),
      p50: at(0.5),
      p90: at(0.9),
      p99: at(0.99),
      p999: at(0.999),
      max: Math.round(sorted[sorted.length - 1]),
    };
  }
}

/** What a run's plan and its tally say. */
export function figuresOf(plan: TransferPlan, tally: Tally) {
  const iterations = tally.counts.reduce((sum, count) => sum + count, 0);
  const bytes = iterations * plan.sizeBytes;
  return {
    transport: plan.transport,
    sizeBytes: plan.sizeBytes,
    qps: plan.qps,
    cc: plan.rateControl.name,
    iterations,
    lost: tally.lost,
    bytes,
    seconds: tally.seconds,
    goodputBps: (bytes * 8) / tally.seconds,
    messagesPerSecond: iterations / tally.seconds,
    latencyNs: tally.latency.summary(),
  };
}

/** Counters that moved; a table of zeros helps nobody. */
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

/** The head of a perftest run: what runs over what, and the numbers both sides exchanged. */
export function printHead(output: Output, endpoint: Endpoint, title: 'BW' | 'Latency'): void {
  const { plan, lanes, device, region } = endpoint;
  output.line(RULE);
  output.line(`                    ${OP_TITLES[plan.op]} ${title} Test`);
  output.line(` Port           : ${device.portDescription}`);
  output.line(
    `${` Number of qps  : ${plan.qps}`.padEnd(33)}Transport type : ${plan.transport.toUpperCase()} over RoCEv2`,
  );
  const { mtu, recovery } = lanes[0].agreement;
  const repair = plan.transport === 'rc' ? recovery : 'none, what is lost stays lost';
  output.line(`${` Mtu            : ${mtu}[B]`.padEnd(33)}Recovery       : ${repair}`);
  output.line(RULE);
  for (const { qp, agreement, offset } of lanes) {
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

const right = (title: string): Column => ({ title, align: 'right' });
const MIB = 1024 * 1024;

/** As perftest prints its bandwidth tests. */
export function printBandwidth(output: Output, result: TransferResult): void {
  output.table(
    [
      right('#bytes'),
      right('#iterations'),
      right('BW average[MiB/sec]'),
      right('BW average[Gb/sec]'),
      right('MsgRate[Mpps]'),
    ],
    [
      [
        result.sizeBytes,
        result.iterations,
        (result.goodputBps / 8 / MIB).toFixed(2),
        (result.goodputBps / 1e9).toFixed(3),
        (result.messagesPerSecond / 1e6).toFixed(6),
      ],
    ],
  );
  printTail(output, result);
}

/** As perftest prints its latency tests. */
export function printLatency(output: Output, result: TransferResult): void {
  const latency = result.latencyNs;
  const us = (ns: number | undefined) => (ns === undefined ? '-' : (ns / 1000).toFixed(2));
  output.table(
    [
      '#bytes',
      '#iterations',
      't_min[usec]',
      't_typical[usec]',
      '90%[usec]',
      '99%[usec]',
      '99.9%[usec]',
      't_max[usec]',
    ].map(right),
    [
      [
        result.sizeBytes,
        result.iterations,
        us(latency?.min),
        us(latency?.p50),
        us(latency?.p90),
        us(latency?.p99),
        us(latency?.p999),
        us(latency?.max),
      ],
    ],
  );
  printTail(output, result);
}

/** What perftest does not say: whether the data is right, and what recovery had to do. */
function printTail(output: Output, result: TransferResult): void {
  const { counters, colors } = { counters: result.counters, colors: output.colors };
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
  output.line(
    ` data ${result.verified ? colors.green('verified') : colors.yellow('not verified')}; ${(result.transport === 'rc' ? repairs : [lossText(result)]).join(', ')}`,
  );
}

function lossText({ iterations, lost }: TransferResult): string {
  if (lost === null) return `${iterations} messages sent; only the receiver knows how many arrived`;
  return lost === 0 ? 'nothing lost' : `${lost} of ${iterations + lost} messages lost`;
}
