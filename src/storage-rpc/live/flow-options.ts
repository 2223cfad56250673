import { checkOneOf, checkWhole, type OptionNames } from '../../core/arguments.js';
import { type RateControlOptions, rateControlSettings } from '../../dcqcn/rate-controls.js';
import { type RecoveryOptions, STANDARD_RECOVERY } from '../../retransmit/recovery-schemes.js';

/**
 * The two classes of storage traffic (Azure storage paper §2.2, §4): foreground requests, and copies, scrubbing and
 * repair. The codes are AF31 and AF11 (RFC 4594 §4.7, §4.8), which a switch that uses the upper three bits maps to
 * priorities 3 and 1.
 */
export const TRAFFIC_CLASSES = {
  /** AF31. */
  foreground: 26,
  /** AF11. */
  background: 10,
} as const;
/** Name of one of {@link TRAFFIC_CLASSES}. */
export type TrafficClass = keyof typeof TRAFFIC_CLASSES;

/** How RDMA connections send. TCP connections are the system's. */
export interface FlowOptions {
  /** Recovery scheme; must be the same on both sides. Default go-back-n. */
  readonly recovery?: RecoveryOptions | undefined;
  /** Rate control of what this side sends on each connection, data and requests. Default: none. */
  readonly rateControl?: RateControlOptions | undefined;
  /** DSCP of what this side sends: 0..63, or a traffic class. Default 0. */
  readonly dscp?: number | TrafficClass | undefined;
}

export const FLOW_OPTIONS: OptionNames<FlowOptions> = { recovery: true, rateControl: true, dscp: true };

export interface FlowTerms {
  readonly recovery: RecoveryOptions;
  readonly rateControl?: RateControlOptions;
  /** 0..63. */
  readonly dscp?: number;
}

export function flowTerms({ recovery = STANDARD_RECOVERY, rateControl, dscp }: FlowOptions): FlowTerms {
  if (rateControl !== undefined) rateControlSettings(rateControl);
  return {
    recovery,
    ...(rateControl !== undefined && { rateControl }),
    ...(dscp !== undefined && { dscp: dscpOf(dscp) }),
  };
}

function dscpOf(dscp: number | TrafficClass): number {
  if (typeof dscp === 'number') return checkWhole('dscp', dscp, 0, 63);
  checkOneOf('dscp', dscp, Object.keys(TRAFFIC_CLASSES));
  return TRAFFIC_CLASSES[dscp];
}
