/**
 * Flows that start together at the same rate follow the same trajectory exactly (the equations treat them alike), so
 * the models integrate one representative a group and count it `count` times: 64 equal flows cost as much as one.
 */

import { RoceError } from 'rocev2/internal/core';

/** Flows that start together at the same rate. */
export interface FlowGroup {
  /** Number of flows in the group, at least 1. */
  readonly count: number;
  /** When they begin to send, in nanoseconds of model time. */
  readonly startNs: number;
  /** Their rate when they begin, bits/s of each flow. Left out: the start rate of the algorithm. */
  readonly initialRateBps?: number | undefined;
}

/** One group of `count` flows that all start at time zero. */
export function togetherAtStart(count: number): FlowGroup[] {
  return [{ count, startNs: 0 }];
}

/** The flows of all groups. */
export function flowCount(groups: readonly FlowGroup[]): number {
  return groups.reduce((total, { count }) => total + count, 0);
}

export function checkFlowGroups(groups: readonly FlowGroup[]): void {
  if (groups.length === 0) throw new RoceError('ERR_ROCE_OUT_OF_RANGE', 'a fluid model needs at least one flow');
  for (const { count, startNs, initialRateBps } of groups) {
    if (!Number.isInteger(count) || count < 1) {
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `flow count ${count} is not a whole number above 0`);
    }
    if (!(startNs >= 0)) throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `flow start ${startNs} ns lies before time zero`);
    if (initialRateBps !== undefined && !(initialRateBps > 0)) {
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `initial rate ${initialRateBps} bit/s is not above 0`);
    }
  }
}
