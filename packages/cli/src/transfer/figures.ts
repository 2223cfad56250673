import { z } from 'zod';
import type { TransferPlan } from './endpoint.js';
import type { Interval } from './intervals.js';
import type { RoundTally } from './transfer-round.js';

const count = z.number().int().min(0);
const seconds = z.number().min(0);
const perSecondSchema = z.number().min(0);

/** One direction of a run in both. */
export interface DirectionFigures {
  /** Messages that arrived. */
  readonly iterations: number;
  /** Duration. */
  readonly seconds: number;
  /** Payload rate, in bits per second. */
  readonly goodputBps: number;
}

const directionSchema: z.ZodType<DirectionFigures> = z.object({
  iterations: count,
  seconds,
  goodputBps: perSecondSchema,
});

const latencySchema = z.object({
  min: z.number(),
  p50: z.number(),
  p90: z.number(),
  p99: z.number(),
  p999: z.number(),
  max: z.number(),
});

export const measuredSchema = z.object({
  iterations: count,
  lost: count.nullable(),
  seconds,
  peakBps: perSecondSchema.nullable(),
  directions: z.array(directionSchema).nullable(),
  latencyNs: latencySchema.nullable(),
});
export type Measured = z.infer<typeof measuredSchema>;

export interface Returned {
  /** Operations completed on each flow. */
  readonly counts: readonly number[];
  readonly seconds: number;
  readonly arrived: number | undefined;
  readonly peakBps?: number | null | undefined;
}

const sum = (counts: readonly number[]) => counts.reduce((total, each) => total + each, 0);

const perSecond = (amount: number, duration: number) => (duration > 0 ? amount / duration : 0);

function directionOf({ sizeBytes }: TransferPlan, iterations: number, duration: number): DirectionFigures {
  return { iterations, seconds: duration, goodputBps: perSecond(iterations * sizeBytes * 8, duration) };
}

export function measuredOf(plan: TransferPlan, tally: RoundTally, returned?: Returned): Measured {
  const sent = directionOf(plan, sum(tally.counts), tally.seconds);
  const back = returned && directionOf(plan, returned.arrived ?? sum(returned.counts), returned.seconds);
  const lostBack = returned === undefined ? 0 : sum(returned.counts) - (returned.arrived ?? sum(returned.counts));
  return {
    iterations: sent.iterations + (back?.iterations ?? 0),
    lost: tally.lost === null ? null : tally.lost + lostBack,
    seconds: Math.max(sent.seconds, back?.seconds ?? 0),
    peakBps: peakOf(tally.peakBps, returned),
    directions: back === undefined ? null : [sent, back],
    latencyNs: tally.latency.summary(),
  };
}

/** As perftest: the sum of both directions, like the average. */
function peakOf(own: number | null | undefined, returned: Returned | undefined): number | null {
  if (returned === undefined) return own ?? null;
  return own == null || returned.peakBps == null ? null : own + returned.peakBps;
}

export function mirrored(measured: Measured): Measured {
  return { ...measured, directions: measured.directions?.toReversed() ?? null };
}

export function figuresOf(plan: TransferPlan, measured: Measured, intervals: readonly Interval[] = []) {
  const { iterations, lost, directions, latencyNs, peakBps } = measured;
  const bytes = iterations * plan.sizeBytes;
  return {
    transport: plan.transport,
    sizeBytes: plan.sizeBytes,
    qps: plan.qps,
    bidirectional: plan.bidirectional,
    cc: plan.rateControl.name,
    iterations,
    lost,
    bytes,
    seconds: measured.seconds,
    goodputBps: perSecond(bytes * 8, measured.seconds),
    messagesPerSecond: perSecond(iterations, measured.seconds),
    peakBps,
    directions,
    intervals,
    latencyNs,
  };
}
