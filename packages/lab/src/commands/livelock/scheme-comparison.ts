/**
 * Compares runs by link utilisation. A software link has no nominal speed, so its capacity is the highest packet rate
 * that any run of the same operation reached, including a lossless go-back-N reference.
 */

import { join, parse } from 'node:path';
import { checkWritable, type Output, orInterrupted } from '@rocev2/command';
import { NS_PER_S } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import { type RecoveryName, STANDARD_RECOVERY } from 'rocev2/internal/retransmit';
import { type LivelockMeasurement, LivelockRig, type LivelockSettings } from './experiment.js';
import type { LivelockOp } from './ops.js';

interface ComparisonSettings extends Omit<LivelockSettings, 'op' | 'scheme'> {
  readonly ops: readonly LivelockOp[];
  readonly schemes: readonly RecoveryName[];
}

/** A run with its link utilisation. */
export interface LivelockRun extends LivelockMeasurement {
  /** 0..1: packets per second, relative to the most that this operation reached on this machine. */
  readonly linkUtilization: number;
}

/** All runs of `rocev2 livelock`. */
export interface Comparison {
  /** The runs, in the order in which they were made. */
  readonly runs: readonly LivelockRun[];
  /** Packets per second of the lossless references. */
  readonly references: ReadonlyArray<{ readonly op: LivelockOp; readonly packetsPerSecond: number }>;
  /** False after an interruption: some runs are missing. */
  readonly isComplete: boolean;
}

const REFERENCE_SECONDS_MAX = 1;

export async function compareSchemes(settings: ComparisonSettings, output: Output): Promise<Comparison> {
  const plan = planOf(settings);
  await checkWritable(plan.find(({ trace }) => trace !== undefined)?.trace);
  const references: LivelockMeasurement[] = [];
  const measurements: LivelockMeasurement[] = [];
  const progress = output.progress(plan.reduce((sum, { seconds }) => sum + seconds, 0));
  await using rig = new LivelockRig();
  let doneSeconds = 0;
  try {
    for (const run of plan) {
      const label = `${run.op} ${run.isReference ? 'without loss' : run.scheme}`;
      const startNs = nowNs();
      progress.update(doneSeconds, label);
      const measuring = rig.run(run, ({ messagesCompleted, packetsSent }) => {
        const seconds = Math.min(run.seconds, (nowNs() - startNs) / NS_PER_S);
        progress.update(doneSeconds + seconds, `${label}: ${packetsSent} packets, ${messagesCompleted} messages`);
      });
      const measurement = await orInterrupted(measuring, output.io.interrupted);
      if (measurement === undefined) break;
      (run.isReference ? references : measurements).push(measurement);
      doneSeconds += run.seconds;
    }
  } finally {
    progress.stop();
  }
  return {
    runs: measurements.map((run) => withUtilization(run, [...references, ...measurements])),
    references: references.map(({ op, packetsPerSecond }) => ({ op, packetsPerSecond })),
    isComplete: references.length + measurements.length === plan.length,
  };
}

function planOf(settings: ComparisonSettings): Array<LivelockSettings & { readonly isReference: boolean }> {
  const { ops, schemes, ...common } = settings;
  const referenceSeconds = Math.min(REFERENCE_SECONDS_MAX, settings.seconds);
  return ops.flatMap((op) => [
    {
      ...common,
      op,
      scheme: STANDARD_RECOVERY,
      lossRule: undefined,
      seconds: referenceSeconds,
      trace: undefined,
      isReference: true,
    },
    ...schemes.map((scheme) => ({
      ...common,
      op,
      scheme,
      trace: traceOf(settings.trace, op, scheme),
      isReference: false,
    })),
  ]);
}

function traceOf(path: string | undefined, op: LivelockOp, scheme: RecoveryName): string | undefined {
  if (path === undefined) return undefined;
  const { dir, name, ext } = parse(path);
  return join(dir, `${name}-${op}-${scheme}${ext}`);
}

function withUtilization(run: LivelockMeasurement, all: readonly LivelockMeasurement[]): LivelockRun {
  const rates = all.filter(({ op }) => op === run.op).map(({ packetsPerSecond }) => packetsPerSecond);
  return { ...run, linkUtilization: run.packetsPerSecond / Math.max(...rates) };
}
