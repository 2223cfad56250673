/**
 * Sources: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM'15 (defaults); Zhu, Ghobadi,
 * Misra, Padhye, "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT'16 (fluid model, the longer
 * ramp of its time-domain runs).
 */

import { RoceError } from 'rocev2/internal/core';
import { checkParameters } from '../check-arguments.js';

/** DCQCN's parameters in bits/s, bytes and nanoseconds, under the names of the papers. */
export interface DcqcnParameters {
  /** Capacity C of the bottleneck, and the line rate of every sender. */
  readonly linkRateBps: number;
  /** Size of the packet in which the model counts. */
  readonly packetBytes: number;
  /** EWMA gain g of alpha. */
  readonly gain: number;
  /** tau: at most one CNP a flow in this time. */
  readonly cnpIntervalNs: number;
  /** tau': alpha decays once in this time without a CNP. Longer than the CNP interval. */
  readonly alphaIntervalNs: number;
  /** T: period of the rate-increase timer. */
  readonly rateTimerNs: number;
  /** B: bytes sent between rate increases of the byte counter. */
  readonly byteCounterBytes: number;
  /** F: fast-recovery stages before additive increase. */
  readonly fastRecoveryStages: number;
  /** R_AI: additive increase step. */
  readonly additiveIncreaseBps: number;
  /** RED: no marking up to here. */
  readonly kminBytes: number;
  /** RED: every packet is marked above this. */
  readonly kmaxBytes: number;
  /** RED: marking probability at Kmax, 0..1. */
  readonly pmax: number;
}

/** SIGCOMM'15 defaults at 40 Gb/s. The phase margins of CoNEXT'16 figure 3 belong to this ramp. */
export const DCQCN_SIGCOMM15: DcqcnParameters = {
  linkRateBps: 40e9,
  packetBytes: 1000,
  gain: 1 / 256,
  cnpIntervalNs: 50_000,
  alphaIntervalNs: 55_000,
  rateTimerNs: 55_000,
  byteCounterBytes: 10e6,
  fastRecoveryStages: 5,
  additiveIncreaseBps: 40e6,
  kminBytes: 5_000,
  kmaxBytes: 200_000,
  pmax: 0.01,
};

/**
 * The time-domain runs of CoNEXT'16 (figures 4, 17, 18, 20): practically the same slope on a ramp ten times longer. On
 * the short ramp 16 flows or more need a marking probability above Pmax, and then there is no queue length that gives
 * it.
 */
export const DCQCN_LONG_RAMP: DcqcnParameters = { ...DCQCN_SIGCOMM15, kmaxBytes: 2_000_000, pmax: 0.1 };

/** The parameters in the units of the equations: packets, packets/s, seconds. */
export interface DcqcnInPackets {
  /** C, packets/s. */
  readonly capacity: number;
  /** g, 0..1. */
  readonly gain: number;
  /** tau, seconds. */
  readonly cnpInterval: number;
  /** tau', seconds. */
  readonly alphaInterval: number;
  /** T, seconds. */
  readonly rateTimer: number;
  /** B, packets. */
  readonly byteCounter: number;
  /** F. */
  readonly fastRecoveryStages: number;
  /** R_AI, packets/s. */
  readonly additiveIncrease: number;
  /** RED: no marking up to this many packets. */
  readonly kmin: number;
  /** RED: every packet is marked above this many packets. */
  readonly kmax: number;
  /** RED: marking probability at Kmax, 0..1. */
  readonly pmax: number;
  /** Marking probability gained per packet of queue on the ramp. */
  readonly slope: number;
}

export function dcqcnInPackets(parameters: DcqcnParameters): DcqcnInPackets {
  checkParameters('DCQCN', parameters, Object.keys(DCQCN_SIGCOMM15));
  const { kminBytes, kmaxBytes, pmax, gain, packetBytes } = parameters;
  if (kmaxBytes <= kminBytes) throw new RoceError('ERR_ROCE_CONFLICT', 'DCQCN kmaxBytes must be above kminBytes');
  if (pmax > 1 || gain > 1) throw new RoceError('ERR_ROCE_OUT_OF_RANGE', 'DCQCN pmax and gain must not be above 1');
  const bitsPerPacket = 8 * packetBytes;
  return {
    capacity: parameters.linkRateBps / bitsPerPacket,
    gain,
    cnpInterval: parameters.cnpIntervalNs * 1e-9,
    alphaInterval: parameters.alphaIntervalNs * 1e-9,
    rateTimer: parameters.rateTimerNs * 1e-9,
    byteCounter: parameters.byteCounterBytes / packetBytes,
    fastRecoveryStages: parameters.fastRecoveryStages,
    additiveIncrease: parameters.additiveIncreaseBps / bitsPerPacket,
    kmin: kminBytes / packetBytes,
    kmax: kmaxBytes / packetBytes,
    pmax,
    slope: (pmax * packetBytes) / (kmaxBytes - kminBytes),
  };
}

export function redMarkProbability(parameters: DcqcnInPackets, queue: number): number {
  if (queue <= parameters.kmin) return 0;
  if (queue > parameters.kmax) return 1;
  return parameters.slope * (queue - parameters.kmin);
}
