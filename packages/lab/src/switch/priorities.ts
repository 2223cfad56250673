import { RoceError } from 'rocev2/internal/core';
import { PRIORITIES } from 'rocev2/internal/packet';

export function priorityMask(priorities: readonly number[]): number {
  let mask = 0;
  for (const priority of priorities) {
    if (!Number.isInteger(priority) || priority < 0 || priority >= PRIORITIES) {
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `${priority} is not a priority`, 'priorities are 0 to 7');
    }
    mask |= 1 << priority;
  }
  return mask;
}
