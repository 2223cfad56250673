/**
 * `rocev2 bw|lat --perftest`: the other side of the stock ib_write_bw, ib_read_lat and their like, as server and as client. perftest neither
 * fills nor checks its buffers, so nothing can be said about the data; only what atomics add up to is known.
 */

import { PERFTEST_TOOLS, type PerftestExchange, type PerftestReport } from '../../cm/perftest-exchange.js';
import { RoceError } from '../../core/errors.js';
import { chooseIo } from '../../driver/port-io.js';
import { Access } from '../../verbs/access.js';
import type { RdmaDevice } from '../../verbs/device.js';
import type { MemoryRegion } from '../../verbs/memory-region.js';
import { CommandFailure, EXIT_INTERRUPTED } from '../exit.js';
import { type Output, SILENT_PROGRESS } from '../output.js';
import type { TransferOptions } from './command.js';
import { clientPort, openEndpointDevice, RECEIVE_DEPTH, type TransferOp } from './endpoint.js';
import { meetOverTcp, meetThroughManager, type PerftestLane, type PerftestMeeting } from './perftest-meeting.js';
import { rateControlOf } from './rate-control.js';
import {
  figuresOf,
  LatencySamples,
  movedCounters,
  printBandwidth,
  printLatency,
  type TransferResult,
} from './result.js';
import {
  answerLatency,
  drainReceives,
  followWrites,
  measureLatency,
  postReceives,
  pump,
  type Tally,
  type TrafficEndpoint,
  type Waiting,
} from './run.js';

/** READs and atomics that perftest has outstanding where its device allows it. */
const OUTSTANDING_READS = 16;
const PAGE_BYTES = 4096;
const MEBIBYTE = 2 ** 20;
const ATOMIC_BYTES = 8;
/** The peer waits in a barrier for as long as the traffic takes. */
const TRAFFIC_TIMEOUT_MS = 600_000;

/** One side of a perftest run that has met its peer. */
interface Conversation {
  readonly tool: 'bw' | 'lat';
  readonly op: TransferOp;
  readonly role: 'client' | 'server';
  readonly device: RdmaDevice;
  readonly meeting: PerftestMeeting;
  readonly exchange: PerftestExchange;
  readonly options: TransferOptions;
  readonly output: Output;
}

/** Runs the client against `host`, or the server without one. Rejects with ERR_ROCE_UNSUPPORTED what perftest cannot do. */
export async function runPerftest(
  tool: 'bw' | 'lat',
  op: TransferOp,
  host: string | undefined,
  options: TransferOptions,
  output: Output,
): Promise<void> {
  if (options.recovery !== 'go-back-n') {
    throw new RoceError(
      'ERR_ROCE_UNSUPPORTED',
      `perftest does not know ${options.recovery}`,
      'it recovers by go-back-n',
    );
  }
  const port = host === undefined ? { address: options.bind?.text ?? '127.0.0.1' } : await clientPort(host, options);
  const device = await openEndpointDevice(port, options);
  let meeting: PerftestMeeting | undefined;
  try {
    const meet = options.rdmaCm === true ? meetThroughManager : meetOverTcp;
    meeting = await meet(device, `ib_${op}_${tool}`, host, options, output);
    const { exchange } = meeting;
    const role = host === undefined ? 'server' : 'client';
    const result = await converse({ tool, op, role, device, meeting, exchange, options, output });
    if (tool === 'bw') printBandwidth(output, result);
    else printLatency(output, result);
    output.line(' perftest neither fills nor checks its buffers');
    output.document(result);
    if (output.io.interrupted.aborted) throw new CommandFailure(EXIT_INTERRUPTED);
  } finally {
    await meeting?.close();
    await device.close();
  }
}

async function converse(conversation: Conversation): Promise<TransferResult> {
  const { tool, op, role, exchange } = conversation;
  const traffic = await connectLanes(conversation);
  if (role === 'server') postReceives(traffic);
  const steps = PERFTEST_TOOLS[`${op}_${tool}`];
  for (let i = 0; i < traffic.lanes.length + steps.barriers; i++) await exchange.barrier();
  let tally = await (role === 'client' ? measure(conversation, traffic) : serve(conversation, traffic));
  if (steps.report) {
    if (role === 'client') await exchange.barrier(TRAFFIC_TIMEOUT_MS);
    const peers = await report(exchange, traffic.plan.sizeBytes, tally);
    // What a client did in a given time only it knows.
    if (role === 'server' && traffic.plan.durationNs > 0) tally = { ...tally, counts: [Number(peers.iterations)] };
  }
  // A server that does not report has waited for the client's last word already.
  if (steps.report || role === 'client') await exchange.finish(TRAFFIC_TIMEOUT_MS, steps.leavesSilently);
  return resultOf(conversation, traffic, tally);
}

async function connectLanes({ tool, op, device, meeting, exchange, options }: Conversation): Promise<TrafficEndpoint> {
  const { size, iters, qp: qps, txDepth } = options;
  const sizeBytes = op === 'atomic' ? ATOMIC_BYTES : size;
  const pd = await device.createPd();
  const sendCq = await device.createCq(2 * txDepth * qps);
  const recvCq = await device.createCq(2 * RECEIVE_DEPTH * qps);
  // The first half of a lane's area is the peer's to read and write; messages of a latency test leave from the second.
  const halfBytes = Math.ceil(Math.max(sizeBytes, exchange.cycleBufferBytes) / PAGE_BYTES) * PAGE_BYTES;
  const region = await pd.regMr(2 * halfBytes * qps, Access.REMOTE_ALL);
  const own: PerftestLane[] = [];
  for (let i = 0; i < qps; i++) {
    const qp = await pd.createQp({ sendCq, recvCq, maxSendWr: txDepth, maxRecvWr: RECEIVE_DEPTH });
    own.push({ qp, region, offset: 2 * halfBytes * i });
  }
  const outstandingReads = op === 'read' || op === 'atomic' ? OUTSTANDING_READS : 1;
  const peers = await meeting.connect(own, outstandingReads);
  const rateControl = rateControlOf(options);
  for (const { qp } of own) await qp.modify({ rateControl });
  const lanes = own.map(({ qp, offset }, i) => ({
    qp,
    offset,
    agreement: {
      peer: peers[i].address,
      remoteQpn: peers[i].qpn,
      mtu: peers[i].pathMtu,
      recovery: 'go-back-n' as const,
      region: { addr: peers[i].remoteAddr, rkey: peers[i].rkey, length: sizeBytes },
      messageBytesMax: undefined,
      purpose: {},
    },
  }));
  const durationNs = options.duration ?? 0;
  const plan = { tool, op, sizeBytes, iterations: durationNs > 0 ? 0 : iters, durationNs, qps, rateControl };
  const channel = {
    get isOpen() {
      return !device.isClosed;
    },
  };
  return { device, plan, lanes, region, sendCq, recvCq, channel };
}

async function measure({ tool, op, options, output }: Conversation, traffic: TrafficEndpoint): Promise<Tally> {
  const progress = output.progress(100);
  try {
    if (tool === 'bw') return await pump(traffic, output.io, options.txDepth, progress);
    // The one test in which perftest's server has the first word.
    if (op === 'write') return await followWrites(traffic, output.io, progress);
    return await measureLatency(traffic, output.io, waitingOf(options), progress);
  } finally {
    progress.stop();
  }
}

function waitingOf(options: TransferOptions): Waiting {
  return options.events === true ? 'events' : 'poll';
}

/** What the server does until the client says in a barrier that it is done. */
async function serve({ tool, op, exchange, options, output }: Conversation, traffic: TrafficEndpoint): Promise<Tally> {
  const { iterations, qps } = traffic.plan;
  const total = iterations === 0 ? Number.POSITIVE_INFINITY : iterations * qps;
  const startMs = performance.now();
  let work: Promise<unknown> | undefined;
  if (tool === 'lat') {
    const begins = op === 'write';
    work = begins
      ? measureLatency(traffic, output.io, 'poll', SILENT_PROGRESS)
      : answerLatency(traffic, waitingOf(options), total);
  } else if (op === 'send') work = drainReceives(traffic, total);
  // With a number of messages both sides count; with a duration only the client's word ends it.
  if (iterations > 0) await work;
  const steps = PERFTEST_TOOLS[`${op}_${tool}`];
  const clientIsDone = steps.report
    ? exchange.barrier(TRAFFIC_TIMEOUT_MS)
    : exchange.finish(TRAFFIC_TIMEOUT_MS, steps.leavesSilently);
  // Work fails when its QP does: then the client has nothing more to say.
  await Promise.race([clientIsDone, ...(work === undefined ? [] : [work.then(() => clientIsDone)])]);
  const counts = traffic.lanes.map(() => iterations);
  return { counts, seconds: (performance.now() - startMs) / 1000, latency: new LatencySamples() };
}

function report(exchange: PerftestExchange, sizeBytes: number, tally: Tally): Promise<PerftestReport> {
  const messages = tally.counts.reduce((sum, count) => sum + count, 0);
  const messagesPerSecond = messages / tally.seconds;
  const average = (messagesPerSecond * sizeBytes) / MEBIBYTE;
  return exchange.exchangeReport({
    sizeBytes: BigInt(sizeBytes),
    iterations: BigInt(messages),
    peak: average,
    average,
    messageRate: messagesPerSecond / 1e6,
  });
}

/** Atomics of the peer add one each, somewhere in a lane's area. */
function sumOf(region: MemoryRegion): bigint {
  let sum = 0n;
  for (let offset = 0; offset < region.length; offset += ATOMIC_BYTES) sum += region.bytes.readBigUInt64LE(offset);
  return sum;
}

function resultOf(
  { op, role, device, options }: Conversation,
  { plan, lanes, region }: TrafficEndpoint,
  tally: Tally,
): TransferResult {
  const figures = figuresOf(plan, tally);
  const isCounted = op === 'atomic' && role === 'server' && figures.iterations > 0;
  return {
    op,
    ...figures,
    verified: isCounted && sumOf(region) === BigInt(figures.iterations),
    recovery: 'go-back-n',
    io: chooseIo(options.io).io,
    engine: options.engine,
    mtu: lanes[0].agreement.mtu,
    counters: movedCounters({ device }),
  };
}
