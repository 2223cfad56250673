import { finiteOrNull } from 'rocev2/internal/core';
import type { EventQueue } from '../event-queue.js';
import type { Flow } from './flow.js';

/** The rate control of one flow at one time. */
export interface ControlSample {
  /** Virtual time. */
  readonly timeNs: number;
  /** Of the flow. */
  readonly id: number;
  /** Host that has the data. */
  readonly from: string;
  /** Host the data goes to. */
  readonly to: string;
  /** Payload sent for the first time since the sample before. */
  readonly sentBps: number;
  /** R_C, bits/s of the link; null while the scheme does not limit. */
  readonly rateBps: number | null;
  /** R_T, the rate that recovery is heading for; null while the scheme does not limit. */
  readonly targetRateBps: number | null;
  /** The estimate of congestion, 0..1; null for schemes without one. */
  readonly alpha: number | null;
  /** The window (cwnd); null for schemes without one. */
  readonly windowBytes: number | null;
}

export function sampleControls(
  events: EventQueue,
  flows: readonly Flow[],
  intervalNs: number,
  onSample: (sample: ControlSample) => void,
): void {
  const sentBefore = new Float64Array(flows.length);
  const look = (): void => {
    for (const [i, flow] of flows.entries()) {
      const { sentBytes } = flow;
      const sentBps = ((sentBytes - sentBefore[i]) * 8e9) / intervalNs;
      sentBefore[i] = sentBytes;
      if (isUnderWay(flow, events.nowNs)) onSample(sampleOf(flow, sentBps, events.nowNs));
    }
    events.after(intervalNs, look);
  };
  events.at(intervalNs, look);
}

function isUnderWay({ plan, completedNs, failure }: Flow, nowNs: number): boolean {
  return plan.startNs <= nowNs && completedNs === undefined && failure === undefined;
}

function sampleOf({ plan, source, sourceQpn }: Flow, sentBps: number, timeNs: number): ControlSample {
  const control = source.station.host.nic.rateOf(sourceQpn)!;
  return {
    timeNs,
    id: plan.id,
    from: plan.from,
    to: plan.to,
    sentBps,
    rateBps: finiteOrNull(control.rateBps(timeNs)),
    targetRateBps: finiteOrNull(control.targetRateBps(timeNs)),
    alpha: finiteOrNull(control.alpha(timeNs)),
    windowBytes: finiteOrNull(control.windowBytes(timeNs)),
  };
}
