/** A scenario divided into logical processes that run in turn on one thread, as their threads would side by side. */

import { divide, lookaheadNs } from '../../packages/lab/src/sim/logical-process.js';
import { factsOf } from '../../packages/lab/src/sim/scenario/facts.js';
import { FlowEnds } from '../../packages/lab/src/sim/scenario/flow-ends.js';
import { planFlows } from '../../packages/lab/src/sim/scenario/flow-plan.js';
import { mergeFacts } from '../../packages/lab/src/sim/scenario/merge-facts.js';
import type { ScenarioResult } from '../../packages/lab/src/sim/scenario/result.js';
import { STEPS } from '../../packages/lab/src/sim/scenario/run-scenario.js';
import { report } from '../../packages/lab/src/sim/scenario/scenario-report.js';
import { ScenarioRun } from '../../packages/lab/src/sim/scenario/scenario-run.js';
import type { Scenario } from '../../packages/lab/src/sim/scenario/schema.js';
import { topologyOf } from '../../packages/lab/src/sim/scenario/topology-of.js';
import { SeededRandom } from '../../src/core/random.js';

interface DividedRun {
  readonly result: ScenarioResult;
  /** Frames that went from one logical process to another. */
  readonly crossings: number;
  /** Windows in which the logical processes ran. */
  readonly windows: number;
  /** Before each step, by part: flows that have queue pairs there. */
  readonly connected: ReadonlyArray<readonly number[]>;
}

/** `stretch`: times the lookahead that is right. */
export async function runDivided(scenario: Scenario, processes: number, stretch = 1): Promise<DividedRun> {
  const topology = topologyOf(scenario.topology);
  const processOf = divide(topology, processes);
  const aheadNs = stretch * lookaheadNs(topology.links, processOf);
  const ends = topology.links.flatMap(({ a, b }) => [b, a]);
  let crossings = 0;
  let windows = 0;
  const connected: number[][] = [];
  const runs: ScenarioRun[] = [];
  const flows = planFlows(scenario, topology, new SeededRandom(scenario.seed)).length;
  const flowEnds = new FlowEnds(new ArrayBuffer(FlowEnds.bytesFor(flows)));
  for (let me = 0; me < processes; me++) {
    runs.push(
      await ScenarioRun.prepare(
        scenario,
        {},
        {
          owns: (node) => processOf.get(node) === me,
          departureOf: (cable) => (arrivalNs, bytes, offset, length) => {
            crossings++;
            runs[processOf.get(ends[cable])!].deliver(cable, arrivalNs, bytes, offset, length);
          },
        },
        flowEnds,
      ),
    );
  }
  const ended = new Uint8Array(runs[0].flows.length);
  for (const run of runs) run.start();
  for (let step = 1; step <= STEPS; step++) {
    const untilNs = (scenario.duration * step) / STEPS;
    for (const run of runs) await run.connectUntil(untilNs);
    connected.push(runs.map(({ connections }) => connections.count));
    for (;;) {
      const firstNs = Math.min(...runs.map(({ nextNs }) => nextNs));
      if (firstNs > untilNs) break;
      windows++;
      for (const run of runs) run.runBefore(firstNs + aheadNs, untilNs);
    }
    for (const run of runs) run.pass(untilNs);
    await Promise.resolve();
    for (const run of runs) {
      run.markEnded(ended);
      run.tellEnds();
    }
    if (ended.every((flag) => flag !== 0)) break;
  }
  const facts = mergeFacts(runs.map(factsOf), topology);
  return { result: report({ scenario, topology, facts, wallSeconds: 0 }), crossings, windows, connected };
}
