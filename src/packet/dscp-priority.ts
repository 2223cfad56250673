import { RoceError } from '../core/errors.js';
import { PRIORITIES } from './pfc.js';

const DSCPS = 64;

/**
 * The priority of each DSCP: its upper three bits, unless `dscpToPriority` has it. Throws ERR_ROCE_OUT_OF_RANGE for
 * DSCPs above 63 and priorities above 7.
 */
export function prioritiesOfDscps(dscpToPriority: Readonly<Record<number, number>> = {}): Uint8Array {
  const priorities = Uint8Array.from({ length: DSCPS }, (_, dscp) => dscp >> 3);
  for (const [dscp, priority] of Object.entries(dscpToPriority)) {
    if (!(Number(dscp) in priorities) || !Number.isInteger(priority) || priority < 0 || priority >= PRIORITIES) {
      throw new RoceError(
        'ERR_ROCE_OUT_OF_RANGE',
        `DSCP ${dscp} cannot go to priority ${priority}`,
        'DSCPs are 0 to 63, priorities 0 to 7',
      );
    }
    priorities[Number(dscp)] = priority;
  }
  return priorities;
}
