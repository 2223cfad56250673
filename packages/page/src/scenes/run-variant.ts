/** Runs one simulation of a scene. */

import { factsOf, report, type Scenario, ScenarioRun, STEPS } from '@rocev2/lab/internal/page';
import { loadScheme, messageWithLine } from './own-scheme.js';
import { type PacketColumns, PacketLog } from './packet-log.js';
import type { Outcome, ProgramVariant, ScenarioVariant, Variant } from './scene.js';
import { startWindowProgram } from './window-program.js';

export interface VariantProgress {
  /** 0..1 */
  readonly done: number;
  readonly timeNs: number;
  /** One number of each series of the scene. */
  readonly sample: readonly number[];
  readonly log: PacketLog;
}

export interface VariantRun {
  readonly outcome: Outcome;
  readonly packets: PacketColumns;
}

type OnStep = (progress: VariantProgress) => Promise<boolean> | boolean;

/**
 * The result is that of `simulate` for the same scenario. `onStep` is called 200 times; the run is given up, without a
 * result, if it resolves to false. Rejects if own code fails, with its line in the message.
 */
export async function runVariant(variant: Variant, onStep: OnStep): Promise<VariantRun | undefined> {
  if ('program' in variant) return await programmed(variant, onStep);
  if (variant.own === undefined) return await simulated(variant, onStep);
  try {
    const name = loadScheme(variant.own);
    const { scenario } = variant;
    const chosen = variant.own.kind === 'rate control' ? { cc: { name } } : { recovery: name };
    const nic = { ...scenario.nic, ...chosen } as Scenario['nic'];
    return await simulated({ ...variant, scenario: { ...scenario, nic } }, onStep);
  } catch (error) {
    throw new Error(messageWithLine(error), { cause: error });
  }
}

async function simulated(
  { name, scenario, watch, means = (_, sampled) => sampled }: ScenarioVariant,
  onStep: OnStep,
): Promise<VariantRun | undefined> {
  const run = await ScenarioRun.prepare(scenario);
  const log = PacketLog.ofFlow(run, run.flows[0]);
  const sample = watch(run);
  const samples: Array<readonly number[]> = [];
  run.start();
  for (let step = 1; step <= STEPS && !run.isOver; step++) {
    const timeNs = (scenario.duration * step) / STEPS;
    await run.connectUntil(timeNs);
    run.runUntil(timeNs);
    const numbers = sample();
    samples.push(numbers);
    if (!(await onStep({ done: step / STEPS, timeNs, sample: numbers, log }))) return undefined;
  }
  const result = report({ scenario, topology: run.topology, facts: factsOf(run), wallSeconds: 0 });
  return { outcome: { name, result, means: means(result, meansOf(samples)) }, packets: log.columns() };
}

async function programmed(
  { name, durationNs, program }: ProgramVariant,
  onStep: OnStep,
): Promise<VariantRun | undefined> {
  const { simulation, log, sample, result } = await startWindowProgram(program);
  const startNs = simulation.nowNs;
  const samples: Array<readonly number[]> = [];
  for (let step = 1; step <= STEPS; step++) {
    const timeNs = startNs + (durationNs * step) / STEPS;
    await simulation.until(simulation.sleep(timeNs - simulation.nowNs));
    const numbers = sample();
    samples.push(numbers);
    if (!(await onStep({ done: step / STEPS, timeNs, sample: numbers, log }))) return undefined;
  }
  return { outcome: { name, result: result(), means: samples[samples.length - 1] }, packets: log.columns() };
}

function meansOf(samples: ReadonlyArray<readonly number[]>): number[] {
  return samples[0].map((_, i) => samples.reduce((sum, one) => sum + one[i], 0) / samples.length);
}
