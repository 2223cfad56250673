/** The entry of @rocev2/lab. */

export type { VerifiedOperations } from './commands/demo/verified-operations.js';
export type { FluidResult } from './commands/fluid-report.js';
export type { Comparison, LivelockRun } from './commands/livelock/comparison.js';
export type { FigureResults } from './commands/sim/figures/figure-report.js';
export { loadResult } from './commands/sim/load-result.js';
export type { SweepResult } from './commands/sim/sweep/points.js';
export { connectQueuePair, type PeerQueuePair } from './live/connect-queue-pair.js';
export type { LiveSwitchPortCounters } from './live/linked-switch.js';
export { SWITCH_PROGRAM, type SwitchService } from './live/switch-program.js';
export type { ScenarioResult } from './sim/scenario/result.js';
export type { ScenarioFile } from './sim/scenario/schema.js';
export { rateControl } from './sim/scenario/schemes.js';
export type { BufferPools } from './switch/buffer-policy.js';
export type { SwitchConfig } from './switch/switch-config.js';
export { pauseFrames } from './switch/switch-counters.js';
export type { SwitchPortSnapshot } from './switch/switch-snapshot.js';
