/**
 * Verifies the data: both sides compute the CRC-32 of each flow's area; atomics must add up exactly.
 */

import { crc32, RoceError } from 'rocev2/internal/core';
import { z } from 'zod';
import type { Endpoint, TransferFlow } from './endpoint.js';
import { measuredSchema, type Returned } from './figures.js';
import { ownOffset, settledArrivals } from './transfer-round.js';

const countsSchema = z.array(z.number().int().min(0));
const doneSchema = z.object({
  done: countsSchema,
  stopped: z.boolean().default(false),
  last: z.boolean().default(true),
});
const digestSchema = z.object({
  digest: z.array(z.string()),
  arrived: z.number().int().min(0).optional(),
  returned: z
    .object({
      counts: countsSchema,
      seconds: z.number().min(0),
      digest: z.array(z.string()),
      peakBps: z.number().min(0).nullable().optional(),
    })
    .optional(),
});
const verdictSchema = z.object({ verified: z.boolean(), measured: measuredSchema });
export type VerificationVerdict = z.infer<typeof verdictSchema>;

/** One text a flow: the CRC-32 of its data from `offsetOf`, or with atomics its counter. */
function digestOf(endpoint: Endpoint, offsetOf: (flow: TransferFlow) => number): string[] {
  const { region, plan, flows } = endpoint;
  const isCounter = plan.op === 'atomic';
  // A WRITE ping-pong numbers its messages in the last byte; if the last one was lost the sides differ there.
  const marked = plan.transport !== 'rc' && plan.tool === 'lat' && plan.op === 'write' ? 1 : 0;
  const length = plan.sizeBytes - marked;
  return flows.map((flow) => {
    const bytes = region.bytes.subarray(offsetOf(flow), offsetOf(flow) + length);
    return isCounter ? bytes.readBigUInt64LE(0).toString() : crc32(bytes).toString(16);
  });
}

const shared = (flow: TransferFlow) => flow.offset;

const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0);

export interface Verification {
  readonly verified: boolean;
  readonly arrived: number | undefined;
  readonly returned: Returned | undefined;
}

export interface ClientEnd {
  /** Operations completed on each flow; one that carried nothing has nothing to be wrong. */
  readonly counts: readonly number[];
  readonly stopped: boolean;
  readonly last: boolean;
}

export async function verifyAsClient(endpoint: Endpoint, end: ClientEnd): Promise<Verification> {
  const { channel, plan } = endpoint;
  const { counts, stopped, last } = end;
  channel.send({ done: counts, stopped, last });
  // If the server also sends, as much data as in the whole run may precede it.
  const answer = digestSchema.safeParse(
    await channel.receive(plan.bidirectional ? Number.POSITIVE_INFINITY : undefined),
  );
  if (!answer.success) throw new RoceError('ERR_ROCE_MISMATCH', 'the server did not send its checksums');
  const { digest, arrived, returned } = answer.data;
  const own = plan.op === 'atomic' ? counts.map(String) : digestOf(endpoint, (flow) => ownOffset(plan, flow));
  const isRight = digest.length === own.length && own.every((text, i) => counts[i] === 0 || text === digest[i]);
  const back = returned === undefined ? undefined : await checkReturned(endpoint, returned);
  const verified = (arrived === 0 || isRight) && (back === undefined || back.isRight);
  return { verified, arrived, returned: back?.returned };
}

export function tellVerdict({ channel }: Endpoint, verdict: VerificationVerdict): void {
  channel.send(verdict);
}

async function checkReturned(
  endpoint: Endpoint,
  { counts, seconds, digest, peakBps }: NonNullable<z.infer<typeof digestSchema>['returned']>,
): Promise<{ readonly isRight: boolean; readonly returned: Returned }> {
  const arrived = await countedArrivals(endpoint, sum(counts));
  const theirs = endpoint.plan.op === 'atomic' ? counts.map(String) : digest;
  const held = digestOf(endpoint, shared);
  const isRight = arrived === 0 || held.every((text, i) => counts[i] === 0 || text === theirs[i]);
  return { isRight, returned: { counts, seconds, arrived, peakBps } };
}

async function countedArrivals(endpoint: Endpoint, sent: number): Promise<number | undefined> {
  const { plan } = endpoint;
  return plan.transport !== 'rc' && plan.tool === 'bw' ? settledArrivals(endpoint, sent) : undefined;
}

export interface OwnTraffic {
  readonly done: Promise<Pick<Returned, 'counts' | 'seconds' | 'peakBps'>>;
  stop(): void;
}

export async function verifyAsServer(
  endpoint: Endpoint,
  own?: OwnTraffic,
): Promise<VerificationVerdict & { readonly last: boolean }> {
  const { channel } = endpoint;
  const end = doneSchema.safeParse(await channel.receive(Number.POSITIVE_INFINITY));
  if (!end.success) throw new RoceError('ERR_ROCE_MISMATCH', 'the client did not send its counts');
  if (end.data.stopped) own?.stop();
  const done = await own?.done;
  const returned = done && {
    counts: done.counts,
    seconds: done.seconds,
    peakBps: done.peakBps,
    digest: digestOf(endpoint, (flow) => flow.secondOffset),
  };
  const arrived = await countedArrivals(endpoint, sum(end.data.done));
  channel.send({ digest: digestOf(endpoint, shared), arrived, returned });
  const answer = verdictSchema.safeParse(await channel.receive());
  if (!answer.success) throw new RoceError('ERR_ROCE_MISMATCH', 'the client did not send its figures');
  return { ...answer.data, last: end.data.last };
}
