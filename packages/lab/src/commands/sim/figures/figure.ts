import { setImmediate } from 'node:timers/promises';
import { CommandFailure, EXIT_INTERRUPTED } from '@rocev2/command';
import type { LineChart } from '@rocev2/command/plot';
import { nowNs } from 'rocev2/internal/driver';
import { type FluidRun, type FluidStudy, simulate } from '../../../fluid/index.js';
import type { Original } from '../../../sim/scenario/like.js';
import type { ScenarioResult } from '../../../sim/scenario/result.js';
import { runScenario } from '../../../sim/scenario/run-scenario.js';
import { runTcp, type TcpResult } from '../../../sim/tcp/run-tcp.js';
import { loadScenario } from '../load.js';

const FLUID_TOLERANCE = 0.05;
const PACKET_TOLERANCE = 0.1;
const SAMPLES = 240;

/** A value that was published, and ours. */
export interface FigureValue {
  /** What it is a value of. */
  readonly what: string;
  /** KB, Gb/s, us, degrees; empty for shares. */
  readonly unit: string;
  /** As published, read off the figure, or of the other simulator. */
  readonly published: number;
  /** Of this run. */
  readonly ours: number;
}

export function compared(what: string, unit: string, published: number, ours: number): FigureValue {
  return { what, unit, published, ours };
}

/** What a figure gives when it is run. */
export interface FigureRun {
  /** The values compared. */
  readonly values: readonly FigureValue[];
  /** Ours, and the published values over it. */
  readonly chart: Omit<LineChart, 'title' | 'subtitle'>;
}

/** What figures run. */
export interface FigureLab {
  /** Integrates a model; durationNs and observeNs are those of the study unless given. */
  fluid(study: FluidStudy, delayNs: number, times?: { durationNs: number; observeNs: number }): Promise<FluidRun>;
  /** Runs a built-in scenario with overrides `path=value` and the settings of another simulator. */
  packets(name: string, set?: readonly string[], like?: Original): Promise<ScenarioResult>;
  /** Runs the flows of a built-in scenario over TCP. */
  tcp(name: string): Promise<TcpResult>;
}

/** One figure. */
export interface Figure {
  /** As `rocev2 sim figure` takes it. */
  readonly name: string;
  /** What it shows. */
  readonly title: string;
  /** Publication and number of the figure, or the other simulator. */
  readonly source: string;
  /** What ours is made of. The tolerance follows: 5 % for fluid models, 10 % for packets. */
  readonly by: 'fluid' | 'packets';
  /** Why ours differs, where it does and the reason is known. */
  readonly note?: string;
  /** Runs it. */
  run(lab: FigureLab): Promise<FigureRun>;
}

/** It belongs to the method, not to a figure. */
export function toleranceOf({ by }: Pick<Figure, 'by'>): number {
  return by === 'fluid' ? FLUID_TOLERANCE : PACKET_TOLERANCE;
}

export function differenceOf({ published, ours }: Pick<FigureValue, 'published' | 'ours'>): number {
  return ours === published ? 0 : (ours - published) / Math.abs(published);
}

export function figureLab(interrupted?: AbortSignal): FigureLab {
  const goOn = async (): Promise<true> => {
    await setImmediate();
    if (interrupted?.aborted) throw new CommandFailure(EXIT_INTERRUPTED);
    return true;
  };
  const results = new Map<string, ScenarioResult>();
  return {
    fluid: async (study, delayNs, { durationNs, observeNs } = study) => {
      await goOn();
      return simulate(study.modelAt(delayNs), { durationNs, observeNs, traceSamples: SAMPLES });
    },
    packets: async (name, set = [], like = undefined) => {
      await goOn();
      const key = [name, like, ...set].join(' ');
      const result =
        results.get(key) ??
        (await runScenario(await loadScenario({ name, set, ...(like !== undefined && { like }) }), {
          realNowNs: nowNs,
          onProgress: goOn,
        }));
      results.set(key, result);
      return result;
    },
    tcp: async (name) => {
      await goOn();
      return runTcp(await loadScenario({ name, set: [] }));
    },
  };
}
