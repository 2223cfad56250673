import { randomInt } from 'node:crypto';
import type { OptionNames } from '../core/arguments.js';
import type { RateControlOptions } from '../dcqcn/rate-controls.js';
import { PSN_COUNT } from '../packet/psn.js';
import { type RecoveryOptions, STANDARD_RECOVERY } from '../retransmit/recovery-schemes.js';
import { Access } from '../verbs/access.js';
import type { CompletionQueue } from '../verbs/completion-queue.js';
import type { RdmaDevice } from '../verbs/device.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import type { SecureTerms } from '../verbs/security.js';
import type { ConnectionManager } from './connection-manager.js';
import type { ExchangeOptions, ExchangeTerms } from './exchange.js';

/** Options of either side of a connection. None is required. */
export interface ConnectionOptions extends SecureTerms {
  /**
   * Memory opened to the peer: a buffer, or a number of fresh bytes. It may be read, written and changed atomically.
   */
  readonly region?: Uint8Array | number | undefined;
  /** Largest path MTU, default what both ports can carry (at most 4096). */
  readonly mtu?: number | undefined;
  /** Default `go-back-n`. Both sides need the same. */
  readonly recovery?: RecoveryOptions | undefined;
  /** How fast this side sends data, also to READs of the peer. Default `{name: 'none'}`. */
  readonly rateControl?: RateControlOptions | undefined;
  /** Longest message that can be received, default 64 KiB. */
  readonly messageBytesMax?: number | undefined;
  /** Messages that may arrive before `receive` is called; more wait at the sender. Default 64. */
  readonly receiveDepth?: number | undefined;
  /** Local ACK timeout code (4.096 us x 2^n), default 14. */
  readonly timeout?: number | undefined;
  /** Retries before the connection fails, 0..7, default 7. */
  readonly retryCnt?: number | undefined;
  /**
   * How long the peer may be silent while its process lives (4.096 us x 2^n), default 22: 17.2 s. 0, and the default
   * where `timeout` or `retryCnt` is given or RDMA CM connects: what these two say. See docs/recovery.md.
   */
  readonly totalTimeout?: number | undefined;
  /**
   * Connects through RDMA CM on QP1 instead of TCP, as librdmacm programs do; `port` is then a port of RDMA_PS_TCP.
   * Recovery is go-back-n, and timers are the manager's.
   */
  readonly manager?: ConnectionManager | undefined;
  /**
   * Takes a peer whose GID is not the address that its TCP connection comes from: behind NAT, or where TCP is on
   * another network than the device. An unauthenticated peer can then direct packets to another host. Default
   * false: such a peer is refused, and `connect` comes from the device's own address.
   */
  readonly allowForeignGid?: boolean | undefined;
}

export const CONNECTION_OPTIONS: OptionNames<ConnectionOptions> = {
  region: true,
  mtu: true,
  recovery: true,
  rateControl: true,
  messageBytesMax: true,
  receiveDepth: true,
  timeout: true,
  retryCnt: true,
  totalTimeout: true,
  manager: true,
  allowForeignGid: true,
  secure: true,
  allow: true,
};

const MTU_MAX = 4096;
export const MESSAGE_BYTES_DEFAULT = 64 * 1024;
export const RECEIVE_DEPTH_DEFAULT = 64;

export interface ConnectionParts {
  readonly pd: ProtectionDomain;
  readonly qp: QueuePair;
  readonly sendCq: CompletionQueue;
  readonly recvCq: CompletionQueue;
  readonly receivePool: MemoryRegion;
  /** Bytes of each receive buffer in the pool: the longest message that can be received. */
  readonly messageBytesMax: number;
}

export type MadeParts = readonly [ConnectionParts, ExchangeOptions];

export async function makeParts(device: RdmaDevice, options: ConnectionOptions): Promise<MadeParts> {
  const messageBytesMax = options.messageBytesMax ?? MESSAGE_BYTES_DEFAULT;
  const depth = options.receiveDepth ?? RECEIVE_DEPTH_DEFAULT;
  const made: Array<{ close(): Promise<void> }> = [];
  const note = <R extends { close(): Promise<void> }>(resource: R): R => {
    made.unshift(resource);
    return resource;
  };
  try {
    const sendCq = note(await device.createCq(256));
    const recvCq = note(await device.createCq(2 * depth));
    const pd = note(await device.createPd());
    const qp = await pd.createQp({ sendCq, recvCq, maxRecvWr: depth });
    // A listener may have a thousand connections, most of them with few and short messages.
    const pool = device.scratch.take(messageBytesMax * depth, { populates: false });
    const receivePool = await pd.regMr(pool, Access.LOCAL_WRITE);
    const region = options.region === undefined ? undefined : await pd.regMr(options.region, Access.REMOTE_ALL);
    const exchange: ExchangeOptions = {
      qp,
      psn: randomInt(PSN_COUNT),
      mtu: options.mtu ?? MTU_MAX,
      ...termsOf(options),
      messageBytesMax,
      ...(options.rateControl !== undefined && { rateControl: options.rateControl }),
      ...(options.timeout !== undefined && { timeout: options.timeout }),
      ...(options.retryCnt !== undefined && { retryCnt: options.retryCnt }),
      ...(options.totalTimeout !== undefined && { totalTimeout: options.totalTimeout }),
      ...(region !== undefined && { region: { addr: region.addr, rkey: region.rkey, length: region.length } }),
    };
    return [{ pd, qp, sendCq, recvCq, receivePool, messageBytesMax }, exchange];
  } catch (error) {
    for (const resource of made) await resource.close().catch(() => {});
    throw error;
  }
}

export function termsOf({ recovery = STANDARD_RECOVERY, allowForeignGid = false }: ConnectionOptions): ExchangeTerms {
  return { recovery, allowForeignGid };
}

export function postReceives({ qp, receivePool, messageBytesMax }: ConnectionParts): void {
  for (let i = 0; i * messageBytesMax < receivePool.length; i++) {
    qp.postRecv({ wrId: i, sges: [receivePool.sge(i * messageBytesMax, messageBytesMax)] });
  }
}

export async function discard({ pd, sendCq, recvCq, receivePool }: ConnectionParts): Promise<void> {
  await pd.close();
  pd.device.scratch.give(receivePool.bytes);
  await sendCq.close();
  await recvCq.close();
}
