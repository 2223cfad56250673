import { RoceError } from 'rocev2/internal/core';
import type { RateControlOptions } from 'rocev2/internal/dcqcn';
import type { IpAddress } from 'rocev2/internal/packet';
import type { RecoveryName } from 'rocev2/internal/retransmit';
import { Access, type QueuePair, type RdmaDevice } from 'rocev2/internal/verbs';

/**
 * 33.6 ms. A NAK is lost as often as any packet, and then only the timeout restarts the sender (one in some 65 000
 * packets); but it must exceed the pauses that an operating system gives a busy process.
 */
const ACK_TIMEOUT_CODE = 13;
const RETRY_COUNT = 7;
/** READ requests in flight: a window is requested in pieces of half a window. */
const READS_IN_FLIGHT = 16;
const MIN_RNR_TIMER = 1; // 10 us

export interface PeerQueuePair {
  readonly peerAddress: IpAddress;
  readonly peerQpn: number;
  readonly peerPsn: number;
  /** Path MTU in bytes. */
  readonly mtu: number;
  readonly windowPackets: number;
  readonly recovery: RecoveryName;
  readonly rateControl?: RateControlOptions;
  /** Local ACK timeout, 4.096 us x 2^code. Default 13: 33.6 ms. */
  readonly timeout?: number;
}

export async function connectQueuePair(
  device: RdmaDevice,
  qp: QueuePair,
  psn: number,
  peer: PeerQueuePair,
): Promise<void> {
  const { peerAddress, peerQpn, peerPsn, mtu, windowPackets, recovery, rateControl, timeout } = peer;
  const { receiveBudgetPackets } = device.attributes;
  if (windowPackets > receiveBudgetPackets) {
    throw new RoceError(
      'ERR_ROCE_OUT_OF_RANGE',
      `a window of ${windowPackets} packets does not fit the socket buffers`,
      `they hold ${receiveBudgetPackets}`,
    );
  }
  await device.link.resolve(peerAddress);
  await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
  await qp.modify({
    state: 'RTR',
    av: { address: peerAddress },
    pathMtu: mtu,
    destQpn: peerQpn,
    rqPsn: peerPsn,
    maxDestRdAtomic: READS_IN_FLIGHT,
    minRnrTimer: MIN_RNR_TIMER,
    recovery,
    inflightPackets: windowPackets,
    ...(rateControl !== undefined && { rateControl }),
  });
  await qp.modify({
    state: 'RTS',
    sqPsn: psn,
    timeout: timeout ?? ACK_TIMEOUT_CODE,
    retryCnt: RETRY_COUNT,
    rnrRetry: 7,
    maxRdAtomic: READS_IN_FLIGHT,
  });
}
