/**
 * What the dashboard's server and its page tell each other about the live lab: two endpoints and a switch on this machine, with traffic from
 * A to B. Plain data, understood by Node and by browsers.
 */

export const LAB_OPS = ['send', 'write', 'read'] as const;
export type LabOp = (typeof LAB_OPS)[number];

/** From the worst to the best. */
export const LAB_SCHEMES = ['go-back-0', 'go-back-n', 'selective-repeat'] as const;
export type LabScheme = (typeof LAB_SCHEMES)[number];

/** Fault rules of the switch, by the names of docs/faults.md. */
export const LAB_LOSS_RULES = ['none', 'ip-id-lsb=0xff', 'random=0.001', 'random=0.01'] as const;
export type LabLossRule = (typeof LAB_LOSS_RULES)[number];

/**
 * The way from A to B: `fast` as software can, without a queue; `slow` through a switch port of 200 Mb/s that marks packets (ECN); `slow-pfc`
 * the same with pause frames.
 */
export const LAB_LINKS = ['fast', 'slow', 'slow-pfc'] as const;
export type LabLink = (typeof LAB_LINKS)[number];

export const LAB_RATE_CONTROLS = ['none', 'dcqcn'] as const;
export type LabRateControl = (typeof LAB_RATE_CONTROLS)[number];

/** What one may change while it runs. */
export interface LabSettings {
  readonly op: LabOp;
  readonly scheme: LabScheme;
  readonly loss: LabLossRule;
  readonly link: LabLink;
  readonly cc: LabRateControl;
}

/** One queue pair of the sender. */
export interface LabQueuePair {
  readonly qpn: number;
  /** Payload of messages that completed. */
  readonly goodputBps: number;
  /** The rate at which it may send; null: not limited. */
  readonly rateBps: number | null;
  /** DCQCN's estimate of congestion, 0..1; null without DCQCN. */
  readonly alpha: number | null;
}

/** What goes into the switch at one of its ports. */
export interface LabPort {
  readonly name: string;
  readonly packetsPerSecond: number;
}

/** Message latencies since the settings last changed: from posting to completion. */
export interface LabLatency {
  readonly count: number;
  readonly p50Ns: number;
  readonly p99Ns: number;
  readonly maxNs: number;
  /** Buckets that hold something, in ascending order. */
  readonly buckets: ReadonlyArray<{ readonly fromNs: number; readonly toNs: number; readonly count: number }>;
}

/** Totals since the lab was opened, or its link was changed. */
export interface LabTotals {
  readonly messages: number;
  readonly packetsSent: number;
  readonly packetsDropped: number;
  readonly packetsRetransmitted: number;
  readonly naks: number;
  readonly timeouts: number;
  /** Packets that the switch marked, notifications that A got of it, and pause frames that the switch sent. */
  readonly marks: number;
  readonly cnps: number;
  readonly pauses: number;
}

/** The state of the lab, a few times a second. Rates are means over the last second. */
export interface LabSample {
  /** Counts samples from 1. */
  readonly number: number;
  /** Since the lab was opened. */
  readonly timeNs: number;
  readonly settings: LabSettings;
  /** Payload of completed messages. */
  readonly goodputBps: number;
  /** Payload that left A, first or again, useful or not. */
  readonly linkBps: number;
  readonly retransmittedPerSecond: number;
  readonly droppedPerSecond: number;
  /** What waits in the switch towards B, now. */
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

/** A packet as it was seen at the endpoint that sent it. */
export interface LabPacket {
  /** Since the first packet of the window. */
  readonly timeNs: number;
  readonly from: 'a' | 'b';
  readonly operation: string;
  readonly psn: number;
  /** Counted from the first data packet of its queue pair in the window: numbers one can follow. */
  readonly relativePsn: number;
  /** Place of its queue pair in `LabSample.queuePairs`. */
  readonly lane: number;
  readonly kind: 'data' | 'ack' | 'nak' | 'request' | 'cnp';
  /** It did not reach the other endpoint. */
  readonly isDropped: boolean;
  /** The same PSN had been sent before. */
  readonly isRepeated: boolean;
}

/** Neighbouring packets of both directions, in the order they were sent: around a loss if there was one. */
export interface LabPackets {
  readonly packets: readonly LabPacket[];
}

/** `GET state`: what a page needs to begin, and what a test compares the page with. */
export interface LabState {
  readonly kind: 'lab';
  readonly messageBytes: number;
  readonly mtu: number;
  /** How many the sender has. */
  readonly queuePairs: number;
  /** The newest last. */
  readonly samples: readonly LabSample[];
  readonly events: readonly LabEvent[];
}

/** `GET stream`: server-sent events of these names. */
export interface LabMessages {
  readonly sample: LabSample;
  readonly event: LabEvent;
}
