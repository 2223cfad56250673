/**
 * `rocev2 bw|lat --perftest`: the other side of the stock ib_write_bw, ib_read_lat and their like, as server and as client. perftest neither
 * fills nor checks its buffers, so nothing can be said about the data; only what atomics add up to is known.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { PERFTEST_TOOLS, type PerftestExchange, type PerftestReport } from '../../cm/perftest-exchange.js';
import { qpTypeOf, TRANSPORTS } from '../../cm/transport.js';
import { RoceError } from '../../core/errors.js';
import { NS_PER_S } from '../../core/units.js';
import { chooseIo } from '../../driver/port-io.js';
import { nowNs } from '../../driver/system-clock.js';
import { STANDARD_RECOVERY } from '../../retransmit/schemes.js';
import { Access } from '../../verbs/access.js';
import type { RdmaDevice } from '../../verbs/device.js';
import type { MemoryRegion } from '../../verbs/memory-region.js';
import { CommandFailure, EXIT_FAILED, EXIT_INTERRUPTED } from '../exit.js';
import { endingInTime } from '../interruption.js';
import { type Output, SILENT_PROGRESS } from '../output.js';
import { expectTransport } from '../peer-transport.js';
import type { TransferOptions } from './command.js';
import {
  checkDatagramSize,
  clientPort,
  grhBytes,
  openEndpointDevice,
  RECEIVE_SGES,
  receiveDepth,
  type TransferOp,
  type TransferPlan,
} from './endpoint.js';
import {
  answerLatency,
  followWrites,
  LOST_ENDS_RUN,
  type LossRule,
  measureLatency,
  NOTHING_IS_LOST,
  type Waiting,
} from './latency.js';
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
  arrivedMessages,
  drainReceives,
  postReceives,
  pump,
  settledArrivals,
  type Tally,
  type TrafficEndpoint,
} from './run.js';

/** READs and atomics that perftest has outstanding where its device allows it. */
const OUTSTANDING_READS = 16;
const PAGE_BYTES = 4096;
const MEBIBYTE = 2 ** 20;
const ATOMIC_BYTES = 8;
/** A server waits for its client as long as the traffic takes, a day. When the client dies its connection ends. */
const TRAFFIC_TIMEOUT_MS = 86_400_000;
/** A client that is done waits so long for its server. */
const SERVER_TIMEOUT_MS = 600_000;
/** A client that is done sends nothing more: so long may its last messages be on their way to us. */
const LAST_MESSAGES_MS = 5_000;
/** The same where nothing is acknowledged: with a hole in its messages a peer waits on, two minutes or for ever. */
const UNRELIABLE_DONE_MS = 10_000;

/** What a server tells of its own in the report: nobody reads it. */
const NOTHING_MEASURED = { counts: [0], seconds: 1 };

/** A UC client of `ib_write_bw` cannot tell silence from success: not even a server with another transport answers anything. */
const UNVERIFIED =
  'unverified: UC acknowledges nothing, and ib_write_bw does not count what is written into its memory; only its host knows what has arrived';

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
  if (options.recovery !== STANDARD_RECOVERY) {
    throw new RoceError(
      'ERR_ROCE_UNSUPPORTED',
      `perftest does not know ${options.recovery}`,
      `it recovers by ${STANDARD_RECOVERY}`,
    );
  }
  const port = host === undefined ? { address: options.bind?.text ?? '127.0.0.1' } : await clientPort(host, options);
  const device = await openEndpointDevice(port, options);
  const { interrupted } = output.io;
  let meeting: PerftestMeeting | undefined;
  try {
    const meet = options.rdmaCm === true ? meetThroughManager : meetOverTcp;
    const flags = options.transport === 'rc' ? '' : ` -c ${options.transport.toUpperCase()}`;
    const met = await endingInTime(meet(device, `ib_${op}_${tool}${flags}`, host, options, output), interrupted);
    meeting = met;
    const { exchange } = met;
    const role = host === undefined ? 'server' : 'client';
    const talk = converse({ tool, op, role, device, meeting: met, exchange, options, output });
    const result = await endingInTime(talk, interrupted);
    if (tool === 'bw') printBandwidth(output, result);
    else printLatency(output, result);
    output.line(' perftest neither fills nor checks its buffers');
    output.document(result);
    if (interrupted.aborted) throw new CommandFailure(EXIT_INTERRUPTED);
    if (result.unfinished !== undefined) throw new CommandFailure(EXIT_FAILED, result.unfinished);
  } finally {
    await meeting?.close();
    await device.close();
  }
}

/** A result, and why it is no success, if it is none: the peer did not come to its end, or nobody knows what arrived. */
type PerftestResult = TransferResult & { readonly unfinished?: string };

async function converse(conversation: Conversation): Promise<PerftestResult> {
  const { role, op, tool, device, exchange, options } = conversation;
  const traffic = await connectLanes(conversation);
  if (role === 'server') postReceives(traffic);
  const steps = PERFTEST_TOOLS[`${op}_${tool}`];
  return expectTransport(
    device,
    options.transport,
    async () => {
      for (let i = 0; i < traffic.lanes.length + steps.barriers; i++) await exchange.barrier();
      const run = role === 'client' ? runAsClient : runAsServer;
      const { tally, unfinished } = await run(conversation, traffic);
      return { ...resultOf(conversation, traffic, tally), ...(unfinished !== undefined && { unfinished }) };
    },
    // UD has no WRITE.
    TRANSPORTS.filter((other) => other !== options.transport && (op === 'send' || other !== 'ud')),
  );
}

interface Run {
  readonly tally: Tally;
  readonly unfinished?: string;
}

async function runAsClient(conversation: Conversation, traffic: TrafficEndpoint): Promise<Run> {
  const { tool, op, exchange } = conversation;
  const steps = PERFTEST_TOOLS[`${op}_${tool}`];
  const tally = await measure(conversation, traffic);
  if (tally.lost !== null && tally.lost > 0) return { tally, unfinished: waitsForEver(conversation) };
  if (steps.report) {
    await exchange.barrier(SERVER_TIMEOUT_MS);
    await report(exchange, traffic.plan.sizeBytes, tally);
  }
  if (tally.lost === 0 || op !== 'send') {
    await exchange.finish(SERVER_TIMEOUT_MS, steps.leavesSilently);
    return tally.lost === 0 ? { tally } : { tally, unfinished: UNVERIFIED };
  }
  if (await comesWithin(exchange.finish(UNRELIABLE_DONE_MS))) return { tally };
  return {
    tally,
    unfinished: 'the server does not say that it has all messages: some were lost, how many only it knows',
  };
}

/** False when the peer's last word does not come in its time. */
async function comesWithin(lastWord: Promise<void>): Promise<boolean> {
  try {
    await lastWord;
    return true;
  } catch (error) {
    if ((error as RoceError).code !== 'ERR_ROCE_CONNECT') throw error;
    return false;
  }
}

function waitsForEver({ op, tool, options }: Conversation): string {
  return `a message was lost, and 'ib_${op}_${tool} -c ${options.transport.toUpperCase()}' waits for it for ever`;
}

async function connectLanes({ tool, op, device, meeting, exchange, options }: Conversation): Promise<TrafficEndpoint> {
  const { size, iters, qp: qps, txDepth, transport } = options;
  const sizeBytes =
    op === 'atomic' ? ATOMIC_BYTES : options.mayShrink === true ? Math.min(size, exchange.pathMtu) : size;
  if (transport === 'ud') checkDatagramSize(sizeBytes, exchange.pathMtu);
  const durationNs = options.duration ?? 0;
  const iterations = durationNs > 0 ? 0 : iters;
  const rateControl = rateControlOf(options);
  const plan: TransferPlan = { tool, op, transport, sizeBytes, iterations, durationNs, qps, rateControl };
  const maxRecvWr = receiveDepth(plan);
  const pd = await device.createPd();
  const sendCq = await device.createCq(2 * txDepth * qps);
  const recvCq = await device.createCq(2 * maxRecvWr * qps);
  // The first half of a lane's area is the peer's to read and write; messages of a latency test leave from the second.
  const halfBytes = Math.ceil(Math.max(sizeBytes, exchange.cycleBufferBytes) / PAGE_BYTES) * PAGE_BYTES;
  const region = await pd.regMr(2 * halfBytes * qps + grhBytes(plan), Access.REMOTE_ALL);
  const own: PerftestLane[] = [];
  const type = qpTypeOf(transport);
  const maxRecvSge = RECEIVE_SGES;
  const makeQp = () => pd.createQp({ type, sendCq, recvCq, maxSendWr: txDepth, maxRecvWr, maxRecvSge });
  for (let i = 0; i < qps; i++) own.push({ makeQp, region, offset: 2 * halfBytes * i });
  const outstandingReads = op === 'read' || op === 'atomic' ? OUTSTANDING_READS : 1;
  const peers = await meeting.connect(own, outstandingReads);
  if (transport !== 'ud') for (const { qp } of peers) await qp.modify({ rateControl });
  const lanes = own.map(({ offset }, i) => ({
    qp: peers[i].qp,
    offset,
    agreement: {
      peer: peers[i].address,
      remoteQpn: peers[i].qpn,
      mtu: peers[i].pathMtu,
      recovery: STANDARD_RECOVERY,
      region: { addr: peers[i].remoteAddr, rkey: peers[i].rkey, length: sizeBytes },
      messageBytesMax: undefined,
      purpose: {},
      destination: peers[i].destination,
    },
  }));
  const channel = {
    get isOpen() {
      return !device.isClosed;
    },
  };
  return { device, plan, lanes, region, sendCq, recvCq, channel, arrivals: { messages: 0 } };
}

async function measure({ tool, op, options, output }: Conversation, traffic: TrafficEndpoint): Promise<Tally> {
  const progress = output.progress(100);
  try {
    if (tool === 'bw') return await pump(traffic, output.io, options.txDepth, progress);
    // The one test in which perftest's server has the first word.
    if (op === 'write') return await followWrites(traffic, output.io, lossRuleOf(options), progress);
    return await measureLatency(traffic, output.io, waitingOf(options), lossRuleOf(options), progress);
  } finally {
    progress.stop();
  }
}

function waitingOf(options: TransferOptions): Waiting {
  return options.events === true ? 'events' : 'poll';
}

function lossRuleOf({ transport }: TransferOptions): LossRule {
  return transport === 'rc' ? NOTHING_IS_LOST : LOST_ENDS_RUN;
}

/** What the server does until the client says in its last barrier that it is done. */
async function runAsServer(conversation: Conversation, traffic: TrafficEndpoint): Promise<Run> {
  const startNs = nowNs();
  const { tool, op } = conversation;
  const serve = tool === 'lat' ? serveRounds : op === 'send' ? serveSends : serveOneSided;
  const { count, lost, unfinished } = await serve(conversation, traffic);
  const seconds = (nowNs() - startNs) / NS_PER_S;
  const tally = { counts: [count], lost, seconds, latency: new LatencySamples() };
  return { tally, ...(unfinished !== undefined && { unfinished }) };
}

/** What a server has seen: messages, those that are missing (null: nobody knows), and why it has ended before its client, if it has. */
interface Served {
  readonly count: number;
  readonly lost: number | null;
  readonly unfinished?: string;
}

/** Messages the client is to send; 0 when only it knows. */
function plannedMessages({ iterations, qps }: TransferPlan): number {
  return iterations * qps;
}

async function serveRounds(conversation: Conversation, traffic: TrafficEndpoint): Promise<Served> {
  const { op, tool, exchange, options } = conversation;
  const planned = plannedMessages(traffic.plan);
  const { leavesSilently } = PERFTEST_TOOLS[`${op}_${tool}`];
  const rounds = answerRounds(conversation, traffic, planned === 0 ? Number.POSITIVE_INFINITY : planned);
  if (options.transport === 'rc' || planned === 0) {
    await bothEnd(rounds, exchange.clientIsDone(TRAFFIC_TIMEOUT_MS, leavesSilently), traffic);
    await exchange.finish();
    return { count: answeredMessages(traffic), lost: 0 };
  }
  const count = await rounds;
  if (count < planned || !(await comesWithin(exchange.clientIsDone(UNRELIABLE_DONE_MS, leavesSilently)))) {
    return { count, lost: 1, unfinished: waitsForEver(conversation) };
  }
  await exchange.finish();
  return { count, lost: 0 };
}

/** Requests of a latency test that this side has answered, itself or by its NIC. A READ that was repeated counts twice there. */
function answeredMessages({ plan, arrivals, device }: TrafficEndpoint): number {
  const planned = plannedMessages(plan);
  if (plan.op === 'write') return planned;
  const { rx_read_requests, rx_atomic_requests } = device.counters();
  const answered = plan.op === 'send' ? arrivals.messages : plan.op === 'read' ? rx_read_requests : rx_atomic_requests;
  return planned === 0 ? answered : Math.min(planned, answered);
}

async function serveSends({ exchange }: Conversation, traffic: TrafficEndpoint): Promise<Served> {
  const planned = plannedMessages(traffic.plan);
  const received = drainReceives(traffic, planned === 0 ? Number.POSITIVE_INFINITY : planned);
  await bothEnd(received, exchange.clientIsDone(TRAFFIC_TIMEOUT_MS), traffic);
  const isReliable = traffic.plan.transport === 'rc';
  const count = isReliable ? arrivedMessages(traffic) : await settledArrivals(traffic, planned);
  await exchange.finish();
  if (isReliable) return { count, lost: 0 };
  return { count, lost: planned === 0 ? null : planned - count };
}

async function serveOneSided({ op, exchange }: Conversation, traffic: TrafficEndpoint): Promise<Served> {
  const { plan } = traffic;
  await exchange.barrier(TRAFFIC_TIMEOUT_MS);
  const sent = await report(exchange, plan.sizeBytes, NOTHING_MEASURED);
  const iterations = Number(sent.iterations);
  // RC: they are here, unless the client has another transport; what comes then is dropped, and ends the run.
  const arrived = await settledArrivals(traffic, op === 'write' ? iterations : 0);
  checkReport(traffic, sent);
  await exchange.finish(TRAFFIC_TIMEOUT_MS);
  if (plan.transport === 'rc') return { count: iterations, lost: 0 };
  // In a given time only what a client did in the middle of it is told.
  return { count: arrived, lost: plan.iterations === 0 ? null : iterations - arrived };
}

/** Rounds that were played; READ and atomics need nobody. */
async function answerRounds(
  { op, options, output }: Conversation,
  traffic: TrafficEndpoint,
  limit: number,
): Promise<number> {
  const loss = lossRuleOf(options);
  if (op === 'send') return answerLatency(traffic, waitingOf(options), loss, limit);
  // The one test in which perftest's server has the first word.
  if (op === 'write') return (await measureLatency(traffic, output.io, 'poll', loss, SILENT_PROGRESS)).counts[0];
  return limit;
}

/**
 * Waits for the client's last word, and for our part of the work where its end is known. Work fails when its queue pair does. Rejects with
 * ERR_ROCE_MISMATCH when the client is done before.
 */
async function bothEnd(work: Promise<unknown>, clientIsDone: Promise<void>, traffic: TrafficEndpoint): Promise<void> {
  const { plan, arrivals } = traffic;
  // Without acknowledgements the client is done when it has sent all: what has not come then will hardly come.
  if (plan.transport !== 'rc' || plan.iterations === 0) {
    await Promise.race([clientIsDone, work.then(() => clientIsDone)]);
    return;
  }
  const giveUp = new AbortController();
  const late = clientIsDone.then(async () => {
    await delay(LAST_MESSAGES_MS, undefined, { signal: giveUp.signal });
    const text = `the client is done, and ${arrivals.messages} of ${plannedMessages(plan)} messages have arrived`;
    throw new RoceError('ERR_ROCE_MISMATCH', text, 'give both sides the same -n and -q');
  });
  try {
    await Promise.race([Promise.all([work, clientIsDone]), late]);
  } finally {
    late.catch(() => {}); // Cancelled, or thrown above.
    giveUp.abort();
  }
}

/** Throws ERR_ROCE_MISMATCH when the client says that it did something else than what has arrived here. */
function checkReport({ plan, device }: TrafficEndpoint, { sizeBytes, iterations }: PerftestReport): void {
  const hint = 'give both sides the same -s; perftest must run without -a';
  if (Number(sizeBytes) !== plan.sizeBytes) {
    const text = `the client moved messages of ${sizeBytes} bytes, and this side was told ${plan.sizeBytes}`;
    throw new RoceError('ERR_ROCE_MISMATCH', text, hint);
  }
  // Only RC promises that they are equal. A READ that was repeated counts twice, and with a duration the first and last seconds are not told.
  if (plan.transport !== 'rc' || plan.op === 'read' || plan.iterations === 0) return;
  const counters = device.counters();
  const arrived = plan.op === 'write' ? counters.rx_write_requests : counters.rx_atomic_requests;
  if (arrived === Number(iterations)) return;
  throw new RoceError(
    'ERR_ROCE_MISMATCH',
    `${arrived} messages have arrived, and the client tells of ${iterations}`,
    hint,
  );
}

function report(
  exchange: PerftestExchange,
  sizeBytes: number,
  tally: Pick<Tally, 'counts' | 'seconds'>,
): Promise<PerftestReport> {
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
    recovery: plan.transport === 'rc' ? STANDARD_RECOVERY : 'none',
    io: chooseIo(options.io).io,
    engine: options.engine,
    mtu: lanes[0].agreement.mtu,
    counters: movedCounters({ device }),
  };
}
