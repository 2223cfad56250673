/**
 * Is the data right? Whoever holds the copy and whoever holds the original compute the CRC-32 of each lane's area; atomics must add up
 * exactly.
 */

import { z } from 'zod';
import { crc32 } from '../../core/crc32.js';
import { RoceError } from '../../core/errors.js';
import type { Endpoint, Lane } from './endpoint.js';
import { settledArrivals } from './run.js';

const doneSchema = z.object({ done: z.array(z.number().int().min(0)) });
const digestSchema = z.object({ digest: z.array(z.string()), arrived: z.number().int().min(0).optional() });
const verdictSchema = z.object({ verified: z.boolean() });

/** One text a lane: the CRC-32 of its data, or its counter. */
function digestOf(endpoint: Endpoint, of: (lane: Lane, bytes: Buffer) => string): string[] {
  const { region, plan } = endpoint;
  // A WRITE ping-pong numbers its messages in their last byte; where the last one was lost the two sides differ there, and nowhere else.
  const marked = plan.transport !== 'rc' && plan.tool === 'lat' && plan.op === 'write' ? 1 : 0;
  const length = plan.sizeBytes - marked;
  return endpoint.lanes.map((lane) => of(lane, region.bytes.subarray(lane.offset, lane.offset + length)));
}

const crcText = (_: Lane, bytes: Buffer) => crc32(bytes).toString(16);
const counterText = (_: Lane, bytes: Buffer) => bytes.readBigUInt64LE(0).toString();

/** What the client knows at the end. */
export interface Verification {
  /** Whoever holds the copy holds what was sent, or nothing. */
  readonly verified: boolean;
  /** Messages that the server has taken, where nothing acknowledges them; undefined: all of them. */
  readonly arrived: number | undefined;
}

/**
 * Client: after the last completion. `counts`: operations completed on each lane; one that carried nothing, because the run was interrupted, has
 * nothing to be wrong. Tells the server the verdict.
 */
export async function verifyAsClient(endpoint: Endpoint, counts: readonly number[]): Promise<Verification> {
  const { channel, plan } = endpoint;
  channel.send({ done: counts });
  const answer = digestSchema.safeParse(await channel.receive());
  if (!answer.success) throw new RoceError('ERR_ROCE_MISMATCH', 'the server did not say what it holds');
  const own = plan.op === 'atomic' ? counts.map(String) : digestOf(endpoint, crcText);
  const { digest, arrived } = answer.data;
  const isRight = own.every((text, i) => counts[i] === 0 || text === digest[i]);
  const verified = digest.length === own.length && (arrived === 0 || isRight);
  channel.send({ verified });
  return { verified, arrived };
}

/** Server: waits for the client to be done, shows what it holds, and hears the verdict. */
export async function verifyAsServer(endpoint: Endpoint): Promise<boolean> {
  const { channel, plan } = endpoint;
  const counts = doneSchema.safeParse(await channel.receive(Number.POSITIVE_INFINITY));
  if (!counts.success) throw new RoceError('ERR_ROCE_MISMATCH', 'the client did not say what it has done');
  const isCounted = plan.transport !== 'rc' && plan.tool === 'bw';
  const sent = counts.data.done.reduce((sum, count) => sum + count, 0);
  const arrived = isCounted ? await settledArrivals(endpoint, sent) : undefined;
  channel.send({ digest: digestOf(endpoint, plan.op === 'atomic' ? counterText : crcText), arrived });
  const answer = verdictSchema.safeParse(await channel.receive());
  return answer.success && answer.data.verified;
}
