import type { MeasuredRun } from '../sim/sweep/measures.js';
import type { SweepPoint } from '../sim/sweep/points.js';
import type { LivelockRun } from './scheme-comparison.js';

/**
 * A run between two processes with the columns of `sim sweep`; it lacks those of queues, switches and flows that end.
 */
export function measuredLivelock(point: SweepPoint, run: LivelockRun): MeasuredRun {
  const { goodputBps } = run;
  return {
    point: { ...point, op: run.op, scheme: run.scheme },
    measures: {
      goodputBps,
      efficiency: run.efficiency,
      theoreticalEfficiency: run.closedForm,
      jain: 1,
      minGoodputBps: goodputBps,
      maxGoodputBps: goodputBps,
      droppedPackets: run.packetsDropped + run.reverseDropped,
      retransmittedPackets: run.packetsRetransmitted,
      failedFlows: run.failure === null ? 0 : 1,
    },
  };
}
