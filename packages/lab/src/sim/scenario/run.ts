/** The same scenario and seed give the same trace. */

import { NS_PER_S } from 'rocev2/internal/core';
import type { SimStation } from '../sim-station.js';
import type { ControlSample } from './control-samples.js';
import { factsOf } from './facts.js';
import { report } from './report.js';
import type { ScenarioResult } from './result.js';
import { ScenarioRun } from './scenario-run.js';
import type { Scenario } from './schema.js';

/** Who looks at the cable of a host. */
export interface FrameObserver {
  /** Name of the host. */
  readonly host: string;
  /** A frame leaves or arrives at this virtual time. */
  onFrame(timeNs: number, bytes: Uint8Array): void;
}

export interface StationObserver {
  readonly host: string;
  attach(station: SimStation, nowNs: () => number): void;
}

/** Interaction of a run with its caller. */
export interface RunOptions {
  /** Called now and then with the share of virtual time that has passed; returning false ends the run there. */
  readonly onProgress?: (done: number) => boolean | Promise<boolean>;
  /**
   * Sees every frame on the cable of one host, from the Ethernet header on, without check sequence. The bytes are valid
   * during the call.
   */
  readonly observer?: FrameObserver;
  /**
   * Called every `sample` of the scenario for each flow in progress, with the rate that its rate control allows. Does
   * not affect the run.
   */
  readonly onControl?: (sample: ControlSample) => void;
  /** Real time in nanoseconds, to say how fast the run was. Default: it took no time. */
  readonly realNowNs?: () => number;
}

export interface WatchedRunOptions extends RunOptions {
  readonly station?: StationObserver;
  readonly onConnections?: (count: number, nowNs: number) => void;
}

/** Where it ends is part of the result: at the end of a step, however often the caller is polled. */
export const STEPS = 200;
/** How often the caller is polled in a step: with many flows the first step takes seconds. */
const LOOKS_PER_STEP = 16;
const LOOKS = STEPS * LOOKS_PER_STEP;

export async function runScenario(scenario: Scenario, options: WatchedRunOptions = {}): Promise<ScenarioResult> {
  const { realNowNs = () => 0 } = options;
  const run = await ScenarioRun.prepare(scenario, options);
  const startedNs = realNowNs();
  run.start();
  for (let look = 1; look <= LOOKS; look++) {
    const untilNs = (scenario.duration * look) / LOOKS;
    await run.connectUntil(untilNs);
    options.onConnections?.(run.connections.count, run.events.nowNs);
    run.runUntil(untilNs);
    if ((await options.onProgress?.(look / LOOKS)) === false) break;
    if (look % LOOKS_PER_STEP === 0 && run.isOver) break;
  }
  return report({
    scenario,
    topology: run.topology,
    facts: factsOf(run),
    wallSeconds: (realNowNs() - startedNs) / NS_PER_S,
  });
}
