/**
 * `@rocev2/lab/sim`: networks of the NIC and the switch of this package in virtual time. A scenario is data and gives a
 * result; a {@link Simulation} is a network on which programs run with verbs. Nothing here opens a socket or reads a
 * clock: the same seed gives the same packets. See docs/lab.md.
 *
 * @module @rocev2/lab/sim
 */

export { type ListedFlow, type Ns3FlowFormat, parseNs3Flows, parseNs3Topology } from './formats/ns3.js';
export type { ControlSample } from './scenario/control-samples.js';
export { like, ORIGINALS, type Original } from './scenario/like.js';
export { override } from './scenario/overrides.js';
export type {
  AssertionResult,
  BufferResult,
  CompletionResult,
  FlowResult,
  QueueResult,
  ScenarioResult,
  Series,
  SlowdownResult,
  Summary,
} from './scenario/result.js';

export type { FrameObserver, RunOptions } from './scenario/run-options.js';
export type { ScenarioFile } from './scenario/schema.js';
export { simulate } from './scenario/simulate.js';
export { BUILT_IN_SCENARIOS } from './scenarios/index.js';
export { Simulation, type SimulationLimits, type SimulationOptions } from './simulation.js';
export { ALI_STORAGE, drawBytes, FB_HADOOP, meanBytes, type SizeTable, WEB_SEARCH } from './sizes.js';
export { jainIndex, mean, quantile } from './statistics.js';
export {
  dumbbell,
  fatTree,
  type LinkKind,
  type LinkPlan,
  leafSpine,
  pair,
  parkingLot,
  region,
  star,
  type Topology,
} from './topology.js';
