/**
 * What the other packages of this repository use of @rocev2/lab, besides its public entry. It changes without notice.
 */

export { collect } from './commands/collect.js';
export { loadResult } from './commands/sim/load-result.js';
export type { MeasuredRun } from './commands/sim/sweep/measures.js';
export { type SweepPoint, sweepPoints, textOf } from './commands/sim/sweep/points.js';
export {
  addSweepOutputOptions,
  checkSweepOutputs,
  type SweepOutputOptions,
} from './commands/sim/sweep/sweep-options.js';
export { writeSweepOutputs } from './commands/sim/sweep/sweep-outputs.js';
export { connectQueuePair, type PeerQueuePair } from './live/connect-queue-pair.js';
export type { LiveSwitchPortCounters } from './live/linked-switch.js';
export { measuredTheory } from './live/measured-theory.js';
export { SWITCH_PROGRAM, type SwitchService } from './live/switch-program.js';
export type { ScenarioResult } from './sim/scenario/result.js';
export { rateControl } from './sim/scenario/schemes.js';
export type { SwitchConfig } from './switch/switch-config.js';
export { pauseFrames } from './switch/switch-counters.js';
