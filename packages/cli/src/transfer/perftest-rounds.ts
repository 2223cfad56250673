/**
 * `-a` and `-b` have a different order (perftest 4.5, write_bw.c, send_bw.c and their like): a one-sided test in both
 * directions has a barrier before each size, and with `-a` one after it; SEND has a barrier before each size, and with
 * `-a` one after it. With `-b` each size has a report, before SEND's last barrier and after that of the others.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { LatencySamples, SILENT_PROGRESS } from '@rocev2/command';
import { NS_PER_S, RoceError } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import { PERFTEST_TOOLS, type PerftestExchange, type PerftestReport } from 'rocev2/internal/stock-exchanges';
import type { TransferPlan } from './endpoint.js';
import type { Returned } from './figures.js';
import {
  answerLatency,
  followWrites,
  LOST_ENDS_RUN,
  type LossRule,
  measureLatency,
  NOTHING_IS_LOST,
} from './latency.js';
import type { Conversation } from './perftest-meeting.js';
import { aloud, bandwidth, type Measurement, waitingOf } from './tool.js';
import type { TransferOptions } from './transfer-options.js';
import {
  arrivedMessages,
  beginRound,
  drainReceives,
  type RoundTally,
  settledArrivals,
  sizesOf,
  type TrafficEndpoint,
} from './transfer-round.js';

const MEBIBYTE = 2 ** 20;
const TRAFFIC_TIMEOUT_MS = 86_400_000;
const SERVER_TIMEOUT_MS = 600_000;
/** Time for the last messages of a finished client to arrive. */
const LAST_MESSAGES_MS = 5_000;
/** Without acknowledgements a peer that misses a message waits two minutes or indefinitely. */
const UNRELIABLE_DONE_MS = 10_000;

const NOTHING_MEASURED = { counts: [0], seconds: 1 };

/**
 * A UC client of `ib_write_bw` cannot tell silence from success: not even a server with another transport answers
 * anything.
 */
const UNVERIFIED =
  'unverified: UC has no acknowledgements, and ib_write_bw does not count what is written into its memory; only its host knows what has arrived';

export interface PerftestOutcome {
  readonly round: TrafficEndpoint;
  readonly tally: RoundTally;
  readonly returned?: Returned;
  readonly unfinished?: string;
}

/** Both sides have passed the barriers before the traffic but for those of the sizes. */
export async function runSizes(conversation: Conversation, traffic: TrafficEndpoint): Promise<PerftestOutcome[]> {
  const { role, tool, op, exchange, output } = conversation;
  const { plan } = traffic;
  const drained = receives(plan, role) ? drainReceives(traffic) : undefined;
  drained?.catch(() => {});
  const play = plan.bidirectional ? playBothWays : role === 'client' ? playAsClient : playAsServer;
  const sizes = sizesOf(plan);
  // A server whose peer reads and writes its memory sees of -a only the end.
  const isBlind = role === 'server' && !plan.bidirectional && tool === 'bw' && op !== 'send';
  const outcomes: PerftestOutcome[] = [];
  for (const size of isBlind ? sizes.slice(-1) : sizes) {
    const isLast = size === sizes.at(-1) || output.io.interrupted.aborted;
    const round = beginRound(traffic, size);
    const { barrierEachSize } = PERFTEST_TOOLS[`${op}_${tool}`];
    if (barrierEachSize || plan.bidirectional) await exchange.barrier();
    const outcome = { round, ...(await play(conversation, { round, drained, isLast })) };
    outcomes.push(outcome);
    if (outcome.unfinished !== undefined || isLast) break;
  }
  return outcomes;
}

function receives({ tool, op, bidirectional }: TransferPlan, role: 'client' | 'server'): boolean {
  return tool === 'bw' && op === 'send' && (bidirectional || role === 'server');
}

interface Round {
  readonly round: TrafficEndpoint;
  readonly drained: Promise<void> | undefined;
  readonly isLast: boolean;
}

type Played = Omit<PerftestOutcome, 'round'>;

async function playAsClient(conversation: Conversation, { round, isLast }: Round): Promise<Played> {
  const { tool, op, exchange } = conversation;
  const steps = PERFTEST_TOOLS[`${op}_${tool}`];
  const tally = await measure(conversation, round);
  if (tool === 'lat' && tally.lost !== null && tally.lost > 0) return { tally, unfinished: waitsForEver(conversation) };
  if (tool === 'bw' && op === 'send' && round.plan.allSizes) await exchange.barrier(SERVER_TIMEOUT_MS);
  if (!isLast) return { tally };
  if (steps.report) {
    await exchange.barrier(SERVER_TIMEOUT_MS);
    await report(exchange, round.plan.sizeBytes, tally);
  }
  if (tally.lost === 0 || op !== 'send') {
    await exchange.finish(SERVER_TIMEOUT_MS, steps.leavesSilently);
    return tally.lost === 0 ? { tally } : { tally, unfinished: UNVERIFIED };
  }
  if (await comesWithin(exchange.finish(UNRELIABLE_DONE_MS))) return { tally };
  return {
    tally,
    unfinished: 'the server did not confirm all messages: some were lost; only the server knows how many',
  };
}

async function playBothWays(conversation: Conversation, { round, drained, isLast }: Round): Promise<Played> {
  const { op, exchange } = conversation;
  const { plan } = round;
  const planned = plannedMessages(plan);
  const [tally] = await Promise.all([
    measure(conversation, round),
    drained !== undefined && planned > 0 ? received(round, drained, planned) : undefined,
  ]);
  if (op !== 'send' && plan.allSizes) await exchange.barrier(SERVER_TIMEOUT_MS);
  // A SEND test that runs for a time has no report.
  const told = op === 'send' && planned === 0 ? undefined : await report(exchange, plan.sizeBytes, tally);
  const returned = told
    ? returnedOf(told)
    : { counts: [arrivedMessages(round)], seconds: tally.seconds, arrived: undefined };
  if (op === 'send' && plan.allSizes) await exchange.barrier(SERVER_TIMEOUT_MS);
  if (isLast) await exchange.finish(SERVER_TIMEOUT_MS);
  return { tally: { ...tally, lost: plan.transport === 'rc' || op === 'send' ? 0 : null }, returned };
}

/** Without acknowledgements some may be lost: then those are waited for that still come. */
async function received(round: TrafficEndpoint, drained: Promise<void>, messages: number): Promise<void> {
  const all = round.arrivals.reached(round.arrivedBefore + messages);
  await Promise.race([all, drained]);
}

function returnedOf({ sizeBytes, iterations, average }: PerftestReport): Returned {
  const seconds = (Number(iterations) * Number(sizeBytes)) / (average * MEBIBYTE);
  return { counts: [Number(iterations)], seconds: Number.isFinite(seconds) ? seconds : 0, arrived: undefined };
}

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
  return `a message was lost, and 'ib_${op}_${tool} -c ${options.transport.toUpperCase()}' waits for it forever`;
}

function lossRuleOf({ transport }: TransferOptions): LossRule {
  return transport === 'rc' ? NOTHING_IS_LOST : LOST_ENDS_RUN;
}

async function measure({ tool, op, options, output }: Conversation, round: TrafficEndpoint): Promise<RoundTally> {
  const how: Measurement = aloud({ options, loss: lossRuleOf(options), output });
  if (tool === 'bw') return bandwidth.measure(round, how);
  const { loss, progress, io } = how;
  try {
    // The one test in which perftest's server has the first word.
    if (op === 'write') return await followWrites(round, io, loss, progress);
    return await measureLatency(round, io, waitingOf(options), loss, progress);
  } finally {
    progress.stop();
  }
}

interface Served {
  readonly count: number;
  readonly lost: number | null;
  readonly unfinished?: string;
}

async function playAsServer(conversation: Conversation, round: Round): Promise<Played> {
  const startNs = nowNs();
  const { tool, op } = conversation;
  const serve = tool === 'lat' ? serveLatency : op === 'send' ? serveSends : serveOneSided;
  const { count, lost, unfinished } = await serve(conversation, round);
  const seconds = (nowNs() - startNs) / NS_PER_S;
  const tally = { counts: [count], lost, seconds, latency: new LatencySamples() };
  return { tally, ...(unfinished !== undefined && { unfinished }) };
}

function plannedMessages({ iterations, qps }: TransferPlan): number {
  return iterations * qps;
}

async function serveLatency(conversation: Conversation, { round, isLast }: Round): Promise<Served> {
  const { op, tool, exchange, options } = conversation;
  const planned = plannedMessages(round.plan);
  const { leavesSilently } = PERFTEST_TOOLS[`${op}_${tool}`];
  const rounds = answerRounds(conversation, round, planned === 0 ? Number.POSITIVE_INFINITY : planned);
  if (!isLast) {
    const count = await rounds;
    return count < planned ? { count, lost: 1, unfinished: waitsForEver(conversation) } : { count, lost: 0 };
  }
  if (options.transport === 'rc' || planned === 0) {
    await bothEnd(rounds, exchange.clientIsDone(TRAFFIC_TIMEOUT_MS, leavesSilently), round);
    await exchange.finish();
    return { count: answeredMessages(round), lost: 0 };
  }
  const count = await rounds;
  if (count < planned || !(await comesWithin(exchange.clientIsDone(UNRELIABLE_DONE_MS, leavesSilently)))) {
    return { count, lost: 1, unfinished: waitsForEver(conversation) };
  }
  await exchange.finish();
  return { count, lost: 0 };
}

/** A READ that was repeated counts twice there. */
function answeredMessages({ plan, arrivals, arrivedBefore, device }: TrafficEndpoint): number {
  const planned = plannedMessages(plan);
  if (plan.op === 'write') return planned;
  const { rx_read_requests, rx_atomic_requests } = device.counters();
  const answered =
    plan.op === 'send' ? arrivals.messages - arrivedBefore : plan.op === 'read' ? rx_read_requests : rx_atomic_requests;
  return planned === 0 ? answered : Math.min(planned, answered);
}

async function serveSends({ exchange }: Conversation, { round, drained, isLast }: Round): Promise<Served> {
  const { plan } = round;
  const planned = plannedMessages(plan);
  const all = received(round, drained!, planned === 0 ? Number.POSITIVE_INFINITY : planned);
  const isReliable = plan.transport === 'rc';
  await bothEnd(all, exchange.clientIsDone(TRAFFIC_TIMEOUT_MS), round);
  const count = isReliable ? arrivedMessages(round) : await settledArrivals(round, planned);
  if (plan.allSizes) {
    exchange.answerBarrier();
    if (isLast) await exchange.clientIsDone(SERVER_TIMEOUT_MS);
  }
  if (isLast) await exchange.finish();
  if (isReliable) return { count, lost: 0 };
  return { count, lost: planned === 0 ? null : planned - count };
}

async function serveOneSided({ op, exchange }: Conversation, { round }: Round): Promise<Served> {
  const { plan } = round;
  await exchange.barrier(TRAFFIC_TIMEOUT_MS);
  const sent = await report(exchange, plan.sizeBytes, NOTHING_MEASURED);
  const iterations = Number(sent.iterations);
  // RC: they are here, unless the client has another transport; what comes then is dropped, and ends the run.
  const rounds = sizesOf(plan).length;
  const arrived = await settledArrivals(round, op === 'write' ? iterations * rounds : 0);
  checkReport(round, sent);
  await exchange.finish(TRAFFIC_TIMEOUT_MS);
  if (plan.transport === 'rc') return { count: iterations, lost: 0 };
  // With a duration, only the client's middle part is reported.
  return { count: arrived, lost: plan.iterations === 0 ? null : iterations * rounds - arrived };
}

async function answerRounds(
  { op, options, output }: Conversation,
  round: TrafficEndpoint,
  limit: number,
): Promise<number> {
  const loss = lossRuleOf(options);
  if (op === 'send') return answerLatency(round, waitingOf(options), loss, limit);
  if (op === 'write') return (await measureLatency(round, output.io, 'poll', loss, SILENT_PROGRESS)).counts[0];
  return limit;
}

/**
 * Waits for the client's last word, and for our part of the work where its end is known. Work fails when its queue pair
 * does. Rejects with ERR_ROCE_MISMATCH when the client is done before.
 */
async function bothEnd(work: Promise<unknown>, clientIsDone: Promise<void>, round: TrafficEndpoint): Promise<void> {
  const { plan } = round;
  if (plan.transport !== 'rc' || plan.iterations === 0) {
    await Promise.race([clientIsDone, work.then(() => clientIsDone)]);
    return;
  }
  const giveUp = new AbortController();
  const late = clientIsDone.then(async () => {
    await delay(LAST_MESSAGES_MS, undefined, { signal: giveUp.signal });
    const text = `the client is done, and ${arrivedMessages(round)} of ${plannedMessages(plan)} messages have arrived`;
    throw new RoceError('ERR_ROCE_MISMATCH', text, 'give both sides the same -n, -q, -a and -b');
  });
  try {
    await Promise.race([Promise.all([work, clientIsDone]), late]);
  } finally {
    late.catch(() => {});
    giveUp.abort();
  }
}

function checkReport({ plan, device }: TrafficEndpoint, { sizeBytes, iterations }: PerftestReport): void {
  const hint = 'give both sides the same -s and -n, and -a to both or to none';
  if (Number(sizeBytes) !== plan.sizeBytes) {
    const text = `the client moved messages of ${sizeBytes} bytes; this side expected ${plan.sizeBytes}`;
    throw new RoceError('ERR_ROCE_MISMATCH', text, hint);
  }
  // Only RC promises that they are equal. A READ that was repeated counts twice, and with a duration the first and last
  // seconds are not reported.
  if (plan.transport !== 'rc' || plan.op === 'read' || plan.iterations === 0) return;
  const counters = device.counters();
  const arrived = plan.op === 'write' ? counters.rx_write_requests : counters.rx_atomic_requests;
  const told = Number(iterations) * sizesOf(plan).length;
  if (arrived === told) return;
  throw new RoceError('ERR_ROCE_MISMATCH', `${arrived} messages have arrived; the client reports ${told}`, hint);
}

function report(
  exchange: PerftestExchange,
  sizeBytes: number,
  tally: Pick<RoundTally, 'counts' | 'seconds' | 'peakBps'>,
): Promise<PerftestReport> {
  const messages = tally.counts.reduce((sum, count) => sum + count, 0);
  const messagesPerSecond = messages / tally.seconds;
  const average = (messagesPerSecond * sizeBytes) / MEBIBYTE;
  const own = {
    sizeBytes: BigInt(sizeBytes),
    iterations: BigInt(messages),
    peak: (tally.peakBps ?? 0) / 8 / MEBIBYTE,
    average,
    messageRate: messagesPerSecond / 1e6,
  };
  return exchange.exchangeReport(own, SERVER_TIMEOUT_MS);
}
