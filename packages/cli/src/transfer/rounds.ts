/** With `-b` the server measures as the client does, and reports its results. */

import { type Output, orInterrupted, SILENT_PROGRESS } from '@rocev2/command';
import { cpuLoad } from './cpu-load.js';
import type { Endpoint } from './endpoint.js';
import { measuredOf, mirrored } from './figures.js';
import { LOST_IS_SKIPPED, type LossRule, NOTHING_IS_LOST } from './latency.js';
import { type RoundOutcome, resultOf, type TransferResult } from './result.js';
import { aloud, type TransferTool } from './tool.js';
import type { TransferOptions } from './transfer-options.js';
import { beginRound, type RoundTally } from './transfer-round.js';
import { tellVerdict, verifyAsClient, verifyAsServer } from './verify.js';

export interface RoundContext {
  readonly tool: TransferTool;
  readonly options: TransferOptions;
  readonly output: Output;
}

export type Serve = (round: Endpoint) => Promise<unknown>;

const IN_SILENCE = { progress: SILENT_PROGRESS, onInterval: () => {} };

function lossRuleOf({ transport }: TransferOptions): LossRule {
  return transport === 'rc' ? NOTHING_IS_LOST : LOST_IS_SKIPPED;
}

function unlessItFails<T>(work: Promise<T>, background: Promise<unknown> | undefined): Promise<T> {
  return background === undefined ? work : Promise.race([work, background.then(() => work)]);
}

export async function roundAsClient(
  { tool, options, output }: RoundContext,
  round: Endpoint,
  serve: Serve | undefined,
  last: boolean,
): Promise<RoundOutcome> {
  const load = cpuLoad();
  await round.channel.barrier('ready');
  const serving = serve?.(round);
  const { interrupted } = output.io;
  const play = async () => {
    const tally = await tool.measure(round, aloud({ options, loss: lossRuleOf(options), output }));
    const end = { counts: tally.counts, stopped: interrupted.aborted, last: last || interrupted.aborted };
    return { tally, ...(await verifyAsClient(round, end)) };
  };
  const { tally, verified, arrived, returned } = await unlessItFails(play(), serving);
  const known = arrived === undefined ? tally : { ...tally, ...arrivalsOf(tally, arrived) };
  const measured = measuredOf(round.plan, known, returned);
  tellVerdict(round, { verified, measured });
  return { round, measured, intervals: tally.intervals ?? [], verified, cpuPercent: load() };
}

function arrivalsOf({ counts }: RoundTally, arrived: number): Pick<RoundTally, 'counts' | 'lost'> {
  return { counts: [arrived], lost: counts.reduce((sum, count) => sum + count, 0) - arrived };
}

export async function roundsAsServer(
  context: RoundContext,
  endpoint: Endpoint,
  sizes: readonly number[],
  serve: Serve,
): Promise<TransferResult[] | undefined> {
  const served: TransferResult[] = [];
  for (const size of sizes) {
    const round = beginRound(endpoint, size);
    const load = cpuLoad();
    const heard = await roundAsServer(context, round, serve);
    if (heard === undefined) return undefined;
    const { verified, measured, last, intervals } = heard;
    const outcome = { round, measured: mirrored(measured), intervals, verified, cpuPercent: load() };
    served.push(resultOf(context.options, outcome));
    if (last) break;
  }
  return served;
}

async function roundAsServer({ tool, options, output }: RoundContext, round: Endpoint, serve: Serve) {
  const { interrupted } = output.io;
  if (
    (await orInterrupted(
      round.channel.barrier('ready').then(() => true),
      interrupted,
    )) === undefined
  )
    return undefined;
  let isOver = false;
  const { channel } = round;
  const untilTheEnd = {
    get isOpen() {
      return channel.isOpen && !isOver;
    },
  };
  const serving = serve({ ...round, channel: untilTheEnd as Endpoint['channel'] });
  const ownEnd = new AbortController();
  const own = () => {
    const io = { ...output.io, interrupted: AbortSignal.any([interrupted, ownEnd.signal]) };
    const done = tool.measure(round, { options, loss: lossRuleOf(options), io, ...IN_SILENCE });
    return { done, stop: () => ownEnd.abort() };
  };
  try {
    const traffic = round.plan.bidirectional ? own() : undefined;
    const verdict = await orInterrupted(unlessItFails(verifyAsServer(round, traffic), serving), interrupted);
    return verdict && { ...verdict, intervals: (await traffic?.done)?.intervals ?? [] };
  } finally {
    isOver = true;
    serving.catch(() => {});
  }
}
