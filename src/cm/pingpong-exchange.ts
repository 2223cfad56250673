/**
 * How ibv_rc_pingpong, ibv_uc_pingpong and ibv_ud_pingpong tell their peer where to send (rdma-core, libibverbs/examples): one line of text each
 * way over TCP, and a word from the client when it has read its own. The PSN in the line is the one its sender begins with. The line does
 * not say the transport. ibv_srq_pingpong sends 256 lines before it reads one.
 */

import { RoceError } from '../core/errors.js';
import { IpAddress } from '../packet/address.js';
import type { FixedChannel } from './fixed-channel.js';
import type { FirstMessage } from './fixed-listener.js';

/** Where ibv_rc_pingpong listens unless told otherwise. */
export const PINGPONG_TCP_PORT = 18515;

/** `LLLL:QQQQQQ:PPPPPP:` and 32 digits of GID, in hex, with a zero byte. */
export const PINGPONG_LINE_BYTES = 52;
const LINE = /^([0-9a-f]{4}):([0-9a-f]{6}):([0-9a-f]{6}):([0-9a-f]{32})\0$/i;
const DONE = Buffer.from('done\0');
/** The client's last word. */
export const PINGPONG_DONE_BYTES = DONE.length;
/** How a second line begins where `done` should stand. */
const SECOND_LINE = /^[0-9a-f]{4}:/i;

/** The client's line. */
export const PINGPONG_FIRST_MESSAGE: FirstMessage = {
  bytes: PINGPONG_LINE_BYTES,
  isRight: (message) => LINE.test(message.toString('latin1')),
};

/** One side's QP. */
export interface PingpongDestination {
  /** 24 bits. */
  readonly qpn: number;
  /** The first PSN it sends. */
  readonly psn: number;
  /** Its IP address, which travels as a GID. */
  readonly address: IpAddress;
}

/** The line that tells the peer, with its zero byte. */
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

/** The client has read what the server told. */
export function writePingpongDone(channel: FixedChannel): void {
  channel.write(DONE);
}

/** The client's part: says where it is, learns where the server is, and that its QP is ready. */
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

/** The server's part. `prepare` takes the QP to RTS: the client sends as soon as it has our answer. */
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

/** What ibv_rc_pingpong tells its QP, beside what the exchange says. */
export const PINGPONG_RC_ATTRIBUTES = {
  toRtr: { maxDestRdAtomic: 1, minRnrTimer: 12 },
  toRts: { timeout: 14, retryCnt: 7, rnrRetry: 7, maxRdAtomic: 1 },
} as const;
