/** Messages between the dashboard's server and page about the live lab: plain data for Node and browsers. */

export const LAB_OPS = ['send', 'write', 'read'] as const;
export type LabOp = (typeof LAB_OPS)[number];

export const LAB_LOSS_RULES = ['none', 'ip-id-lsb=0xff', 'random=0.001', 'random=0.01'] as const;
export type LabLossRule = (typeof LAB_LOSS_RULES)[number];

/**
 * The way from A to B: `fast` as software can, without a queue; `slow` through a switch port of 200 Mb/s that marks
 * packets (ECN); `slow-pfc` the same with pause frames.
 */
export const LAB_LINKS = ['fast', 'slow', 'slow-pfc'] as const;
export type LabLink = (typeof LAB_LINKS)[number];

export interface LabSettings {
  readonly op: LabOp;
  readonly scheme: string;
  readonly loss: LabLossRule;
  readonly link: LabLink;
  readonly cc: string;
}

export interface LabQueuePair {
  readonly qpn: number;
  readonly goodputBps: number;
  readonly rateBps: number | null;
  /** DCQCN's estimate of congestion, 0..1; null without DCQCN. */
  readonly alpha: number | null;
}

export interface LabPort {
  readonly name: string;
  readonly packetsPerSecond: number;
}

export interface LabLatency {
  readonly count: number;
  readonly p50Ns: number;
  readonly p99Ns: number;
  readonly maxNs: number;
  /** Buckets that hold something, in ascending order. Only the newest sample has them. */
  readonly buckets: ReadonlyArray<{ readonly fromNs: number; readonly toNs: number; readonly count: number }>;
}

export interface LabTotals {
  readonly messages: number;
  readonly packetsSent: number;
  readonly packetsDropped: number;
  readonly packetsRetransmitted: number;
  readonly naks: number;
  readonly timeouts: number;
  readonly marks: number;
  readonly cnps: number;
  readonly pauses: number;
}

export interface LabSample {
  /** Counts samples from 1. */
  readonly number: number;
  readonly timeNs: number;
  readonly settings: LabSettings;
  readonly goodputBps: number;
  readonly linkBps: number;
  readonly retransmittedPerSecond: number;
  readonly droppedPerSecond: number;
  readonly queueBytes: number;
  readonly queuePairs: readonly LabQueuePair[];
  readonly ports: readonly LabPort[];
  readonly latency: LabLatency;
  readonly totals: LabTotals;
}

export interface LabEvent {
  /** Counts events from 1. */
  readonly number: number;
  readonly timeNs: number;
  readonly kind: 'settings' | 'loss' | 'timeout' | 'failure';
  readonly text: string;
}

export interface LabPacket {
  readonly timeNs: number;
  readonly arrivedNs: number | null;
  readonly from: 'a' | 'b';
  readonly operation: string;
  /** As on the wire, 24 bits. */
  readonly psn: number;
  /**
   * Its PSN counted from the first one of its connection, which is 0: numbers that people can follow. Those of one
   * connection never go down except for packets retransmitted, and never restart at 2^24.
   */
  readonly relativePsn: number | null;
  readonly lane: number;
  readonly kind: 'data' | 'ack' | 'nak' | 'request' | 'cnp';
  readonly isDropped: boolean;
  readonly isRepeated: boolean;
}

export interface LabPackets {
  readonly packets: readonly LabPacket[];
}

export interface LabChoices {
  readonly schemes: readonly string[];
  readonly schemeSummaries: Readonly<Record<string, string>>;
  readonly rateControls: readonly string[];
  readonly rateControlSummaries: Readonly<Record<string, string>>;
}

export interface LabState {
  readonly kind: 'lab';
  readonly messageBytes: number;
  /** Path MTU in bytes. */
  readonly mtu: number;
  readonly queuePairs: number;
  readonly choices: LabChoices;
  readonly samples: readonly LabSample[];
  readonly events: readonly LabEvent[];
}

export interface LabMessages {
  readonly sample: LabSample;
  readonly event: LabEvent;
}
