/**
 * A test between two of our own, one message size after the other: both sides get ready, the traffic runs, the data is checked. With `-b` the
 * server measures as the client does, and tells it what it has done.
 */

import { orInterrupted } from '../interruption.js';
import { type Output, SILENT_PROGRESS } from '../output.js';
import type { TransferOptions } from './command.js';
import type { Endpoint } from './endpoint.js';
import { LOST_IS_SKIPPED, type LossRule, NOTHING_IS_LOST } from './latency.js';
import { beginRound, type Tally } from './run.js';
import { aloud, type TransferTool } from './tool.js';
import { type Returned, verifyAsClient, verifyAsServer } from './verify.js';

/** What both sides need beside the endpoint. */
export interface RoundContext {
  /** The command. */
  readonly tool: TransferTool;
  /** Of this side. */
  readonly options: TransferOptions;
  /** For people, or the document. */
  readonly output: Output;
}

/** What came of one size. */
export interface RoundOutcome {
  /** What the client measured. */
  readonly tally: Tally;
  /** The other direction, if there is one. */
  readonly returned: Returned | undefined;
  /** Whoever holds the copy holds what was sent. */
  readonly verified: boolean;
}

/** What answers the peer in one round; ends with the round. */
export type Serve = (round: Endpoint) => Promise<unknown>;

/** The server's traffic is told by its client. */
const IN_SILENCE = { progress: SILENT_PROGRESS, onInterval: () => {} };

function lossRuleOf({ transport }: TransferOptions): LossRule {
  return transport === 'rc' ? NOTHING_IS_LOST : LOST_IS_SKIPPED;
}

/** What `work` comes to, unless `background` fails before. */
function unlessItFails<T>(work: Promise<T>, background: Promise<unknown> | undefined): Promise<T> {
  return background === undefined ? work : Promise.race([work, background.then(() => work)]);
}

/** The client's part of one round. */
export async function roundAsClient(
  { tool, options, output }: RoundContext,
  round: Endpoint,
  serve: Serve | undefined,
  last: boolean,
): Promise<RoundOutcome> {
  await round.channel.barrier('ready');
  const serving = serve?.(round);
  const { interrupted } = output.io;
  const play = async () => {
    const tally = await tool.measure(round, aloud({ options, loss: lossRuleOf(options), output }));
    const end = { counts: tally.counts, stopped: interrupted.aborted, last: last || interrupted.aborted };
    return { tally, ...(await verifyAsClient(round, end)) };
  };
  const { tally, verified, arrived, returned } = await unlessItFails(play(), serving);
  return { tally: arrived === undefined ? tally : { ...tally, ...arrivalsOf(tally, arrived) }, returned, verified };
}

/** What a sender that nobody acknowledges has sent, as its receiver counts it. */
function arrivalsOf({ counts }: Tally, arrived: number): Pick<Tally, 'counts' | 'lost'> {
  return { counts: [arrived], lost: counts.reduce((sum, count) => sum + count, 0) - arrived };
}

/** What the server has seen, one entry a size. */
export interface ServedRound {
  /** The endpoint, with the plan of this size. */
  readonly round: Endpoint;
  /** The client found the data right. */
  readonly verified: boolean;
}

/** The server's part of all rounds, until the client says that it was the last one; undefined after Ctrl-C. */
export async function roundsAsServer(
  context: RoundContext,
  endpoint: Endpoint,
  sizes: readonly number[],
  serve: Serve,
): Promise<ServedRound[] | undefined> {
  const served: ServedRound[] = [];
  for (const size of sizes) {
    const round = beginRound(endpoint, size);
    const verdict = await roundAsServer(context, round, serve);
    if (verdict === undefined) return undefined;
    served.push({ round, verified: verdict.verified });
    if (verdict.last) break;
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
    const verdict = verifyAsServer(round, round.plan.bidirectional ? own() : undefined);
    return await orInterrupted(unlessItFails(verdict, serving), interrupted);
  } finally {
    isOver = true;
    serving.catch(() => {}); // Told above, or of no interest any more.
  }
}
