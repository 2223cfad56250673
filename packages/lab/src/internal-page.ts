/**
 * What the page of this repository uses of the simulator: without files, and without the validation of scenario files.
 * It changes without notice.
 */

export { connectQueuePair } from './live/connect-queue-pair.js';
export { nextTurn } from './sim/promises.js';
export { factsOf } from './sim/scenario/facts.js';
export type { Flow } from './sim/scenario/flow.js';
export type { ScenarioResult } from './sim/scenario/result.js';
export { STEPS } from './sim/scenario/run-scenario.js';
export { report } from './sim/scenario/scenario-report.js';
export { ScenarioRun } from './sim/scenario/scenario-run.js';
export type { Scenario } from './sim/scenario/schema.js';
export { Simulation } from './sim/simulation.js';
export { pair } from './sim/topology.js';
export { virtualClock } from './sim/virtual-clock.js';
