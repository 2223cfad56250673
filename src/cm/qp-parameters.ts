/**
 * What REQ and REP mean for the queue pairs (IBTA vol. 1 §12.6.5, §12.6.9): attributes of the way to RTR and RTS, as
 * Linux derives them (drivers/infiniband/core/cm.c). The starting PSN of a message is the one its *sender* expects
 * first, and its receiver sends.
 */

import type { IpAddress } from '../packet/address.js';
import { Access } from '../verbs/access.js';
import type { QpAttr } from '../verbs/qp-attributes.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import type { MessageFields } from './messages.js';
import { ackTimeoutWithDelay, peerAckTimeout } from './timing.js';

/** Connection options of a program, the same for both sides. */
export interface CmConnectionOptions {
  /** Handed to the peer's program. At most 56 bytes in a request, 196 in an acceptance. */
  readonly privateData?: Uint8Array | undefined;
  /**
   * READs and atomics this side answers at a time, 0..128. Default 16; an acceptance grants no more than was asked for.
   */
  readonly responderResources?: number | undefined;
  /** READs and atomics this side issues at a time, 0..128. Default 16, and never more than the peer answers. */
  readonly initiatorDepth?: number | undefined;
  /** How often the *peer* repeats a SEND that found no receive, 0..7; 7 (default): without limit. */
  readonly rnrRetryCount?: number | undefined;
  /** How long this side asks such a peer to wait, as an RNR timer code. Default 12, 0.64 ms; Linux has 0, 655 ms. */
  readonly minRnrTimer?: number | undefined;
}

export interface Resources {
  readonly startingPsn: number;
  readonly responderResources: number;
  readonly initiatorDepth: number;
  /** 0..7; 7 means without end. */
  readonly rnrRetryCount: number;
  /** RNR timer code, 0..31. */
  readonly minRnrTimer: number;
}

const RD_ATOMIC_DEFAULT = 16;

export function resourcesOf(options: CmConnectionOptions, startingPsn: number): Resources {
  return {
    startingPsn,
    responderResources: options.responderResources ?? RD_ATOMIC_DEFAULT,
    initiatorDepth: options.initiatorDepth ?? RD_ATOMIC_DEFAULT,
    rnrRetryCount: options.rnrRetryCount ?? 7,
    minRnrTimer: options.minRnrTimer ?? 12,
  };
}

export function pathMtuCode(bytes: number): number {
  return Math.log2(bytes) - 7;
}

export function pathMtuBytes(code: number): number {
  return 128 << code;
}

/** A QP that is past RESET is left as it is. */
export async function initializeQp(qp: QueuePair): Promise<void> {
  if (qp.state !== 'RESET') return;
  await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
}

export interface QpParameters {
  readonly toRtr: QpAttr;
  readonly toRts: QpAttr;
}

export function activeParameters(
  remote: IpAddress,
  own: Resources & {
    readonly pathMtuCode: number;
    readonly retryCount: number;
    readonly ackTimeout: number;
    readonly dscp: number;
  },
  reply: MessageFields<'REP'>,
): QpParameters {
  return {
    toRtr: {
      state: 'RTR',
      av: { address: remote, dscp: own.dscp },
      pathMtu: pathMtuBytes(own.pathMtuCode),
      destQpn: reply.localQpn,
      rqPsn: own.startingPsn,
      maxDestRdAtomic: own.responderResources,
      minRnrTimer: own.minRnrTimer,
    },
    toRts: {
      state: 'RTS',
      sqPsn: reply.startingPsn,
      timeout: peerAckTimeout(ackTimeoutWithDelay(own.ackTimeout, reply.targetAckDelay)),
      retryCnt: own.retryCount,
      rnrRetry: reply.rnrRetryCount,
      maxRdAtomic: Math.min(own.initiatorDepth, reply.responderResources),
    },
  };
}

export function passiveParameters(remote: IpAddress, request: MessageFields<'REQ'>, own: Resources): QpParameters {
  return {
    toRtr: {
      state: 'RTR',
      av: { address: remote, dscp: request.primaryTrafficClass >> 2 },
      pathMtu: pathMtuBytes(request.pathMtu),
      destQpn: request.localQpn,
      rqPsn: own.startingPsn,
      maxDestRdAtomic: own.responderResources,
      minRnrTimer: own.minRnrTimer,
    },
    toRts: {
      state: 'RTS',
      sqPsn: request.startingPsn,
      timeout: peerAckTimeout(request.primaryLocalAckTimeout),
      retryCnt: request.retryCount,
      rnrRetry: request.rnrRetryCount,
      maxRdAtomic: Math.min(own.initiatorDepth, request.responderResources),
    },
  };
}
