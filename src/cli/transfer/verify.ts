/**
 * Is the data right? Whoever holds the copy and whoever holds the original compute the CRC-32 of each lane's area; atomics must add up
 * exactly.
 */

import { z } from 'zod';
import { crc32 } from '../../core/crc32.js';
import { RoceError } from '../../core/errors.js';
import type { Endpoint, Lane } from './endpoint.js';

const digestSchema = z.object({ digest: z.array(z.string()) });
const verdictSchema = z.object({ verified: z.boolean() });

/** One text a lane: the CRC-32 of its data, or its counter. */
function digestOf(endpoint: Endpoint, of: (lane: Lane, bytes: Buffer) => string): string[] {
  const { region, plan } = endpoint;
  return endpoint.lanes.map((lane) => of(lane, region.bytes.subarray(lane.offset, lane.offset + plan.sizeBytes)));
}

const crcText = (_: Lane, bytes: Buffer) => crc32(bytes).toString(16);
const counterText = (_: Lane, bytes: Buffer) => bytes.readBigUInt64LE(0).toString();

/**
 * Client: after the last completion. `counts`: operations completed on each lane; one that carried nothing, because the run was interrupted, has
 * nothing to be wrong. Tells the server the verdict.
 */
export async function verifyAsClient(endpoint: Endpoint, counts: readonly number[]): Promise<boolean> {
  const { channel, plan } = endpoint;
  channel.send({ done: counts });
  const answer = digestSchema.safeParse(await channel.receive());
  if (!answer.success) throw new RoceError('ERR_ROCE_MISMATCH', 'the server did not say what it holds');
  const own = plan.op === 'atomic' ? counts.map(String) : digestOf(endpoint, crcText);
  const { digest } = answer.data;
  const verified = digest.length === own.length && own.every((text, i) => counts[i] === 0 || text === digest[i]);
  channel.send({ verified });
  return verified;
}

/** Server: waits for the client to be done, shows what it holds, and hears the verdict. */
export async function verifyAsServer(endpoint: Endpoint): Promise<boolean> {
  const { channel, plan } = endpoint;
  await channel.receive(Number.POSITIVE_INFINITY);
  channel.send({ digest: digestOf(endpoint, plan.op === 'atomic' ? counterText : crcText) });
  const answer = verdictSchema.safeParse(await channel.receive());
  return answer.success && answer.data.verified;
}
