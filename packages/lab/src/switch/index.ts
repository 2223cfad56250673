/**
 * `@rocev2/lab/switch`: the Ethernet switch of this package without I/O: priorities, shared packet memory, PFC with its
 * watchdog, ECN marking, ECMP, fault rules. A driver puts frames in and takes frames out, and says what time it is;
 * {@link Switch} describes how. See docs/switch.md.
 *
 * @module @rocev2/lab/switch
 */

export { type RandomSource, SeededRandom } from 'rocev2/internal/core';
export type {
  FaultAction,
  FaultActionKind,
  FaultCounters,
  FaultFate,
  FaultSubject,
  RunningAction,
} from 'rocev2/internal/faults';
export { FaultPlan, type FaultRuleHits, type FaultVerdict } from 'rocev2/internal/faults';
export type { BufferPools, IngressGroupUse, PoolUse } from './buffer-policy.js';
export { type HeadroomModel, headroomBytes } from './headroom.js';
export { Switch, type SwitchOptions } from './switch.js';
export type {
  BufferConfig,
  ClassificationConfig,
  IntConfig,
  MarkingConfig,
  PfcConfig,
  PiConfig,
  RedConfig,
  RouteConfig,
  SchedulingConfig,
  SwitchConfig,
  SwitchPortConfig,
  TrimConfig,
  WatchdogConfig,
} from './switch-config.js';
export type { SwitchPortCounters } from './switch-counters.js';
export type { EgressQueueUse, SwitchPortSnapshot, SwitchSnapshot } from './switch-snapshot.js';
