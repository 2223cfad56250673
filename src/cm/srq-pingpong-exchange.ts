/**
 * The exchange of ibv_srq_pingpong (rdma-core, libibverbs/examples): 256 lines each way, however many queue pairs there
 * are. Lines without a queue pair have no GID.
 */

import { RoceError } from '../core/errors.js';
import type { FixedChannel } from './fixed-channel.js';
import {
  encodeDestination,
  PINGPONG_DONE_BYTES,
  PINGPONG_LINE_BYTES,
  type PingpongDestination,
  parseDestination,
  writePingpongDone,
} from './pingpong-exchange.js';

/** Lines each way: MAX_QP of srq_pingpong.c. */
export const SRQ_PINGPONG_LINES = 256;
const EMPTY_LINE = Buffer.from(`0000:000000:000000:${'0'.repeat(32)}\0`);

export async function exchangeAsSrqClient(
  channel: FixedChannel,
  own: readonly PingpongDestination[],
): Promise<PingpongDestination[]> {
  channel.write(encodeDestinations(own));
  const peers = await readDestinations(channel, own.length);
  writePingpongDone(channel);
  channel.close();
  return peers;
}

export async function exchangeAsSrqServer(
  channel: FixedChannel,
  own: readonly PingpongDestination[],
  prepare: (peers: readonly PingpongDestination[]) => Promise<void>,
): Promise<PingpongDestination[]> {
  const peers = await readDestinations(channel, own.length);
  await prepare(peers);
  channel.write(encodeDestinations(own));
  await channel.read(PINGPONG_DONE_BYTES, "'done'");
  channel.close();
  return peers;
}

function encodeDestinations(own: readonly PingpongDestination[]): Uint8Array {
  const empty = Array<Uint8Array>(SRQ_PINGPONG_LINES - own.length).fill(EMPTY_LINE);
  return Buffer.concat([...own.map(encodeDestination), ...empty]);
}

async function readDestinations(channel: FixedChannel, count: number): Promise<PingpongDestination[]> {
  const what = 'its queue pairs (is it ibv_srq_pingpong? ibv_rc_pingpong has one)';
  const bytes = await channel.read(SRQ_PINGPONG_LINES * PINGPONG_LINE_BYTES, what);
  const line = (k: number) => bytes.subarray(k * PINGPONG_LINE_BYTES, (k + 1) * PINGPONG_LINE_BYTES);
  const peers = [parseDestination(line(0))];
  while (peers.length < SRQ_PINGPONG_LINES && !line(peers.length).equals(EMPTY_LINE)) {
    peers.push(parseDestination(line(peers.length)));
  }
  if (peers.length === count) return peers;
  const text = `the peer has ${peers.length} queue pairs, and this side ${count}`;
  throw new RoceError('ERR_ROCE_MISMATCH', text, 'give both sides the same -q');
}
