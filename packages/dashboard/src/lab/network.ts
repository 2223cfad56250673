import type { SwitchConfig } from '@rocev2/lab/internal';
import type { RateControlOptions } from 'rocev2/internal/dcqcn';
import type { LabLink } from '../messages/lab-messages.js';

interface LabNetwork {
  readonly switchConfig: SwitchConfig;
  readonly endpointRateBps: number;
  readonly windowPackets: number;
  readonly timeout: number;
  readonly tuned: readonly RateControlOptions[];
}

const SLOW_BPS = 200e6;
const ENDPOINT_BPS = 1e9;
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
const HEADROOM_BYTES = 256 * 1024;
/** A lossless queue may take a ninth of it (alpha 1/8) before it pauses its sender: 60 KB. */
const SHARED_BYTES = 540e3;

export const NETWORKS: Readonly<Record<LabLink, LabNetwork>> = {
  fast: {
    switchConfig: {},
    endpointRateBps: 10e9,
    windowPackets: 64,
    timeout: 13,
    tuned: [],
  },
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

export function rateControlOf({ tuned }: LabNetwork, cc: string): RateControlOptions {
  return tuned.find(({ name }) => name === cc) ?? ({ name: cc } as RateControlOptions);
}
