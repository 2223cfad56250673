/**
 * Published parameter sets of DCQCN, by name. Other parameters have the defaults (SIGCOMM'15). Each set is for the line
 * rate that it names; for another rate also set `linkRateBps`.
 */

import { FREE_RUNNING } from './phase.js';
import type { RateControlOptions } from './rate-controls.js';

/** A published set of parameters. */
export interface DcqcnPreset {
  /** The source of the numbers, and where our algorithm differs from the published one. */
  readonly source: string;
  /** Those that differ from the defaults. */
  readonly parameters: Omit<Extract<RateControlOptions, Record<'name', 'dcqcn'>>, 'name'>;
}

/** mlx5 and HPCC's simulator: alpha by a free-running timer, the target kept at consecutive cuts. */
const TIMER_DRIVEN = { alphaByTimer: 1, clampTargetRate: 0, clampTargetRateAfterTimeIncrease: 1 } as const;

const HPCC = {
  ...TIMER_DRIVEN,
  linkRateBps: 100e9,
  minimumRateBps: 1e9,
  decreasePhase: FREE_RUNNING,
  firstCnpRateBps: 100e9,
  forgetsAtLineRate: 0,
  byteCounterBytes: 0,
  fastRecoveryStages: 2, // 1 there, where a stage is compared before it goes up.
  additiveIncreaseBps: 20e6,
  hyperIncreaseBps: 200e6,
  hyperIncreaseGrows: 0,
  cnpIntervalNs: 0,
} as const;

/**
 * A Gen1 NIC's burst: its size is not published; 16 KB is the smallest segment of TIMELY, which NICs of that time were
 * built for.
 */
const GEN1_BURST_BYTES = 16_000;
const AZURE_WINDOW_NS = 50_000;

const PRESETS = {
  sigcomm15: {
    source: "Zhu et al., SIGCOMM'15: 40 Gb/s, additive increase only, as in its fluid model; the minimum rate is ours",
    parameters: {},
  },
  'ns3-rdma': {
    source:
      'github.com/bobzhuyb/ns3-rdma, its configuration file. Not copied: shorter periods after a hyper step, the cut of targets far above the rate',
    parameters: {
      minimumRateBps: 100e6,
      initialAlpha: 0.5,
      alphaBeforeCut: 1,
      rateTimerNs: 60_000,
      byteCounterBytes: 300e6,
      hyperIncreaseBps: 200e6,
      cnpPhase: FREE_RUNNING,
    },
  },
  hpcc: {
    source:
      "github.com/alibaba-edu/High-Precision-Congestion-Control, 'dcqcn' at 100 Gb/s: no cut at the first notification",
    parameters: { ...HPCC, alphaIntervalNs: 1000, decreaseIntervalNs: 4000, rateTimerNs: 300_000 },
  },
  'hpcc-paper': {
    source: "the same repository, 'dcqcn_paper' at 100 Gb/s",
    parameters: { ...HPCC, alphaIntervalNs: 50_000, decreaseIntervalNs: 50_000, rateTimerNs: 55_000 },
  },
  mlx5: {
    source:
      'NVIDIA firmware defaults (mlxconfig, Linux cc_params) at 100 Gb/s; rpg_byte_reset taken as bytes, both intervals as minimum times, as documented',
    parameters: {
      ...TIMER_DRIVEN,
      linkRateBps: 100e9,
      minimumRateBps: 1e6,
      gain: 5 / 1024,
      initialAlpha: 1023 / 1024,
      alphaIntervalNs: 1000,
      decreaseIntervalNs: 4000,
      rateTimerNs: 300_000,
      byteCounterBytes: 32_767,
      fastRecoveryStages: 1,
      additiveIncreaseBps: 5e6,
      hyperIncreaseBps: 50e6,
      cnpIntervalNs: 4000,
    },
  },
  'azure-gen1': {
    source: "Bai et al., NSDI'23: coalescing at the receiver, bursts; the numbers are SIGCOMM'15's",
    parameters: { cnpIntervalNs: AZURE_WINDOW_NS, decreaseIntervalNs: 0, burstBytes: GEN1_BURST_BYTES },
  },
  'azure-gen2': {
    source:
      "Bai et al., NSDI'23, Gen2 and Gen3 as shipped: a notification for every mark, coalescing at the sender, packet by packet",
    parameters: { cnpIntervalNs: 0, decreaseIntervalNs: AZURE_WINDOW_NS },
  },
  'azure-gen2-fixed': {
    source:
      "Bai et al., NSDI'23, Gen2 and Gen3 with Gen1: notifications limited at the receiver, the shortest window, bursts",
    parameters: { cnpIntervalNs: AZURE_WINDOW_NS, decreaseIntervalNs: 1000, burstBytes: GEN1_BURST_BYTES },
  },
} as const satisfies Record<string, DcqcnPreset>;

/** Name of a published set of DCQCN parameters. */
export type DcqcnPresetName = keyof typeof PRESETS;

/** Published sets of DCQCN parameters, by name, each with its source. */
export const DCQCN_PRESETS: Readonly<Record<DcqcnPresetName, DcqcnPreset>> = PRESETS;
