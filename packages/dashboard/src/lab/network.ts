/** The networks of the lab: what stands between A and B, and how DCQCN is set for it. */

import type { SwitchConfig } from '@rocev2/lab/internal';
import type { RateControlOptions } from 'rocev2/internal/dcqcn';
import type { LabLink } from '../messages/lab.js';

interface LabNetwork {
  readonly switchConfig: SwitchConfig;
  /** Of the endpoints' own links. */
  readonly endpointRateBps: number;
  /** Packets in flight, all queue pairs together. */
  readonly windowPackets: number;
  /** Local ACK timeout, 4.096 us x 2^code: longer where packets wait in queues. */
  readonly timeout: number;
  /** Rate controls with parameters for this network; the others have their defaults. */
  readonly tuned: readonly RateControlOptions[];
}

/** Slow enough for software to keep to, and for people to watch. */
const SLOW_BPS = 200e6;
const ENDPOINT_BPS = 1e9;
/** Holds more than the queue at which marking is certain. */
const DEEP_WINDOW_PACKETS = 192;
/** The parameters of DCQCN are for 40 Gb/s and microseconds; here the loop takes milliseconds. */
const SCALE = 100;
const SLOW_DCQCN: RateControlOptions = {
  name: 'dcqcn',
  linkRateBps: SLOW_BPS,
  minimumRateBps: SLOW_BPS / 1000,
  gain: 1 / 32,
  alphaIntervalNs: 55e3 * SCALE,
  rateTimerNs: 55e3 * SCALE,
  cnpIntervalNs: 50e3 * SCALE,
  additiveIncreaseBps: 40e6 / SCALE,
  clampTargetRate: 0,
};
/** More than the window: what comes after the pause was asked for has room. */
const HEADROOM_BYTES = 256 * 1024;
/** A lossless queue may take a ninth of it (alpha 1/8) before it pauses its sender: 60 KB. */
const SHARED_BYTES = 540e3;

/** The network for each choice of link. */
export const NETWORKS: Readonly<Record<LabLink, LabNetwork>> = {
  /** As fast as software is; the switch has no queue. */
  fast: {
    switchConfig: {},
    endpointRateBps: 10e9,
    windowPackets: 64,
    timeout: 13,
    tuned: [],
  },
  /** A slow link to B, and marks on its queue. */
  slow: {
    switchConfig: {
      portConfig: { b: { rateBps: SLOW_BPS } },
      ecn: { kind: 'red', kminBytes: 20e3, kmaxBytes: 120e3, pmax: 0.2 },
    },
    endpointRateBps: ENDPOINT_BPS,
    windowPackets: DEEP_WINDOW_PACKETS,
    timeout: 16,
    tuned: [SLOW_DCQCN],
  },
  /** The same without loss by overflow: A is paused while the queue is long. */
  'slow-pfc': {
    switchConfig: {
      portDefaults: { rateBps: ENDPOINT_BPS, headroomBytes: HEADROOM_BYTES },
      portConfig: { b: { rateBps: SLOW_BPS, headroomBytes: HEADROOM_BYTES } },
      pfc: { priorities: [0] },
      buffer: { totalBytes: SHARED_BYTES + 2 * HEADROOM_BYTES },
      ecn: { kind: 'red', kminBytes: 20e3, kmaxBytes: 120e3, pmax: 0.2 },
    },
    endpointRateBps: ENDPOINT_BPS,
    windowPackets: DEEP_WINDOW_PACKETS,
    timeout: 16,
    tuned: [SLOW_DCQCN],
  },
};

/** The rate control for a choice, with the parameters that suit the network. */
export function rateControlOf({ tuned }: LabNetwork, cc: string): RateControlOptions {
  return tuned.find(({ name }) => name === cc) ?? ({ name: cc } as RateControlOptions);
}
