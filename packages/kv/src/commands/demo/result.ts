/** What the demonstration has measured, from the samples of its readers. */

import { NS_PER_S } from 'rocev2/internal/core';
import { Histogram, type LatencySummary } from 'rocev2/internal/estats';
import type { Sample } from './paced-gets.js';

/** Seconds of one step of the time line. */
const STEP_S = 0.1;

/** The turns of an owner: idle, then computing, again and again from `startNs` on. */
export interface Turns {
  /** By the system's monotonic clock. */
  readonly startNs: number;
  /** Nanoseconds in which it waits for work. */
  readonly idleNs: number;
  /** Nanoseconds in which it computes. */
  readonly busyNs: number;
}

/** One reader of `kv demo --json`. */
export interface KvDemoReader {
  /** How it reads. */
  readonly name: string;
  /** All GETs. One without an answer counts with the time that it has waited. */
  readonly get: LatencySummary;
  /** Those that were asked while the owner computed. */
  readonly whileBusy: LatencySummary;
  /** Those that were asked while it did not. */
  readonly whileIdle: LatencySummary;
  /** The slowest GET of each tenth of a second in which it was asked, nanoseconds; 0 where none was. */
  readonly worstNs: readonly number[];
}

/** Whether the owner computed at that time. */
export function isBusy(ns: number, { startNs, idleNs, busyNs }: Turns): boolean {
  return ns >= startNs && (ns - startNs) % (idleNs + busyNs) >= idleNs;
}

/** The figures of one reader over `seconds`. */
export function readerOf(name: string, samples: readonly Sample[], turns: Turns, seconds: number): KvDemoReader {
  const [all, busy, idle] = [new Histogram(), new Histogram(), new Histogram()];
  const worstNs = new Array<number>(Math.max(1, Math.floor(seconds / STEP_S))).fill(0);
  for (const { askedNs, latencyNs } of samples) {
    all.record(latencyNs);
    (isBusy(askedNs, turns) ? busy : idle).record(latencyNs);
    const step = Math.floor((askedNs - turns.startNs) / NS_PER_S / STEP_S);
    if (step >= 0 && step < worstNs.length) worstNs[step] = Math.max(worstNs[step], latencyNs);
  }
  return { name, get: all.summary(), whileBusy: busy.summary(), whileIdle: idle.summary(), worstNs };
}

/** The middle of each step, seconds. */
export function stepSeconds(steps: number): number[] {
  return Array.from({ length: steps }, (_, k) => (k + 0.5) * STEP_S);
}
