/**
 * Flows that start together at the same rate follow the same trajectory exactly (the equations treat them alike), so
 * the models integrate one representative a group and count it `count` times: 64 equal flows cost as much as one.
 */

import { checkKind, checkObject, checkWhole, RoceError } from 'rocev2/internal/core';
import { checkFlows, checkNs, checkNumber, FLOWS_MAX } from '../check-arguments.js';

const RATE_BPS_MAX = 1e13;

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
  checkFlows(count);
  return [{ count, startNs: 0 }];
}

/** The flows of all groups. */
export function flowCount(groups: readonly FlowGroup[]): number {
  checkFlowGroups(groups);
  return groups.reduce((total, { count }) => total + count, 0);
}

export function checkFlowGroups(groups: readonly FlowGroup[]): void {
  checkKind('groups', groups, Array.isArray(groups), 'a list of flow groups');
  if (groups.length === 0) throw new RoceError('ERR_ROCE_OUT_OF_RANGE', 'a fluid model needs at least one flow');
  for (const group of groups) {
    checkObject('a flow group', group, 'an object: count, startNs');
    const { count, startNs, initialRateBps } = group;
    checkWhole('count of a flow group', count, 1, FLOWS_MAX);
    checkNs('startNs of a flow group', startNs);
    if (initialRateBps !== undefined) checkNumber('initialRateBps', initialRateBps, 1, RATE_BPS_MAX);
  }
}
