/** All fault actions. A new one is a file in `actions/` and its entries here. */

import { bthOffset } from '../../packet/psp.js';
import { type BleachCounters, bleach } from './actions/bleach.js';
import { type CorruptCounters, corrupt } from './actions/corrupt.js';
import { type DelayCounters, delay } from './actions/delay.js';
import { drop } from './actions/drop.js';
import { type DscpCounters, dscp } from './actions/dscp.js';
import { type DuplicateCounters, duplicate } from './actions/duplicate.js';
import { type MarkCounters, mark } from './actions/mark.js';
import { rate } from './actions/rate.js';
import { reorder } from './actions/reorder.js';
import { type RewriteCounters, rewriteField } from './actions/rewrite-field.js';
import { type TrimCounters, trim } from './actions/trim.js';
import type { FaultActionKind, FaultEffect, FaultyPacket } from './fault-action.js';

/** Counters of fault rules of a carrier. */
export interface FaultCounters
  extends CorruptCounters,
    DuplicateCounters,
    DelayCounters,
    MarkCounters,
    BleachCounters,
    DscpCounters,
    TrimCounters,
    RewriteCounters {}

/** An action of a fault rule. */
export type FaultAction = FaultActionKind<keyof FaultCounters>;

/** In the order in which those of one rule apply. */
export const FAULT_ACTIONS: readonly FaultAction[] = [
  drop,
  rewriteField,
  trim,
  corrupt,
  mark,
  bleach,
  dscp,
  duplicate,
  reorder,
  rate,
  delay,
];

export function newFaultCounters(): FaultCounters {
  const names = FAULT_ACTIONS.flatMap(({ counter }) => counter ?? []);
  return Object.fromEntries(names.map((name) => [name, 0])) as { [Name in keyof FaultCounters]: number };
}

/** An action of a rule that runs. */
export interface RunningAction {
  /** Its entry in the list of actions. */
  readonly action: FaultAction;
  /** @internal */
  readonly effect: FaultEffect;
}

/** Changes a packet as the actions say, and counts what they changed. */
export function changePacket(actions: readonly RunningAction[], packet: FaultyPacket, counters?: FaultCounters): void {
  const bth = packet.offset + bthOffset(packet.bytes, packet.offset, packet.length);
  for (const { action, effect } of actions) {
    const isChanged = effect.change?.(packet, bth) ?? false;
    if (isChanged && counters !== undefined && action.counter !== undefined) counters[action.counter]++;
  }
}
