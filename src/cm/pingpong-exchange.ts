/**
 * The exchange of ibv_rc_pingpong, ibv_uc_pingpong and ibv_ud_pingpong (rdma-core, libibverbs/examples): a line of text
 * each way over TCP, and an acknowledgement by the client. The PSN in a line is its sender's first. ibv_srq_pingpong
 * sends 256 lines before it reads one.
 */

import { RoceError } from '../core/errors.js';
import { IpAddress } from '../packet/address.js';
import type { FixedChannel } from './fixed-channel.js';
import type { FirstMessage } from './fixed-listener.js';

export const PINGPONG_TCP_PORT = 18515;

/** `LLLL:QQQQQQ:PPPPPP:` and 32 digits of GID, in hex, with a zero byte. */
export const PINGPONG_LINE_BYTES = 52;
const LINE = /^([0-9a-f]{4}):([0-9a-f]{6}):([0-9a-f]{6}):([0-9a-f]{32})\0$/i;
const DONE = Buffer.from('done\0');
export const PINGPONG_DONE_BYTES = DONE.length;
const SECOND_LINE = /^[0-9a-f]{4}:/i;

export const PINGPONG_FIRST_MESSAGE: FirstMessage = {
  bytes: PINGPONG_LINE_BYTES,
  isRight: (message) => LINE.test(message.toString('latin1')),
};

export interface PingpongDestination {
  /** 24 bits. */
  readonly qpn: number;
  readonly psn: number;
  readonly address: IpAddress;
}

export function encodeDestination({ qpn, psn, address }: PingpongDestination): Uint8Array {
  const hex6 = (value: number) => value.toString(16).padStart(6, '0');
  return Buffer.from(`0000:${hex6(qpn)}:${hex6(psn)}:${address.gidHex}\0`);
}

/** Throws ERR_ROCE_MISMATCH for anything else, and for a peer without a RoCE GID. */
export function parseDestination(line: Uint8Array): PingpongDestination {
  const match = LINE.exec(Buffer.from(line).toString('latin1'));
  if (match === null) {
    throw new RoceError('ERR_ROCE_MISMATCH', 'the peer does not speak the exchange of ibv_*_pingpong');
  }
  const gid = Buffer.from(match[4], 'hex');
  if (gid.every((byte) => byte === 0)) {
    throw new RoceError('ERR_ROCE_MISMATCH', 'the peer sent no GID', 'start it with -g and the index of a RoCE v2 GID');
  }
  return {
    qpn: Number.parseInt(match[2], 16),
    psn: Number.parseInt(match[3], 16),
    address: IpAddress.fromBytes(gid),
  };
}

export function writePingpongDone(channel: FixedChannel): void {
  channel.write(DONE);
}

export async function exchangeAsPingpongClient(
  channel: FixedChannel,
  own: PingpongDestination,
): Promise<PingpongDestination> {
  channel.write(encodeDestination(own));
  const what = 'its QP (ibv_srq_pingpong would wait for 256 lines)';
  const peer = parseDestination(await channel.read(PINGPONG_LINE_BYTES, what));
  writePingpongDone(channel);
  channel.close();
  return peer;
}

/** `prepare` takes the QP to RTS: the client sends as soon as it has our answer. */
export async function exchangeAsPingpongServer(
  channel: FixedChannel,
  own: PingpongDestination,
  prepare: (peer: PingpongDestination) => Promise<void>,
): Promise<PingpongDestination> {
  const peer = parseDestination(await channel.read(PINGPONG_LINE_BYTES, 'its QP'));
  await prepare(peer);
  channel.write(encodeDestination(own));
  const last = await channel.read(PINGPONG_DONE_BYTES, "'done'");
  channel.close();
  if (SECOND_LINE.test(last.toString('latin1'))) {
    throw new RoceError(
      'ERR_ROCE_MISMATCH',
      'the peer is ibv_srq_pingpong',
      'start ibv_rc_pingpong, ibv_uc_pingpong or ibv_ud_pingpong, or rocev2 srq-pingpong here',
    );
  }
  return peer;
}

export const PINGPONG_RC_ATTRIBUTES = {
  toRtr: { maxDestRdAtomic: 1, minRnrTimer: 12 },
  toRts: { timeout: 14, retryCnt: 7, rnrRetry: 7, maxRdAtomic: 1 },
} as const;
