/**
 * What the dashboard's server and its page tell each other about the live lab: two endpoints and a switch on this machine, with traffic from
 * A to B. Plain data, understood by Node and by browsers.
 */

/** How the data may get from A to B. */
export const LAB_OPS = ['send', 'write', 'read'] as const;
/** How the data gets from A to B. */
export type LabOp = (typeof LAB_OPS)[number];

/** Fault rules of the switch, by the names of docs/faults.md. */
export const LAB_LOSS_RULES = ['none', 'ip-id-lsb=0xff', 'random=0.001', 'random=0.01'] as const;
/** What the switch loses. */
export type LabLossRule = (typeof LAB_LOSS_RULES)[number];

/**
 * The way from A to B: `fast` as software can, without a queue; `slow` through a switch port of 200 Mb/s that marks packets (ECN); `slow-pfc`
 * the same with pause frames.
 */
export const LAB_LINKS = ['fast', 'slow', 'slow-pfc'] as const;
/** How fast the link to B is. */
export type LabLink = (typeof LAB_LINKS)[number];

/** What one may change while it runs. */
export interface LabSettings {
  /** How the data gets from A to B. */
  readonly op: LabOp;
  /** How losses are recovered: one of `LabChoices.schemes`. */
  readonly scheme: string;
  /** What the switch loses. */
  readonly loss: LabLossRule;
  /** How fast the link to B is. */
  readonly link: LabLink;
  /** How the sender is slowed down: one of `LabChoices.rateControls`. */
  readonly cc: string;
}

/** One queue pair of the sender. */
export interface LabQueuePair {
  /** Its number. */
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
  /** As the switch calls it. */
  readonly name: string;
  /** Packets that came in. */
  readonly packetsPerSecond: number;
}

/** Message latencies since the settings last changed: from posting to completion. */
export interface LabLatency {
  /** Messages. */
  readonly count: number;
  /** Median. */
  readonly p50Ns: number;
  /** 99th percentile. */
  readonly p99Ns: number;
  /** Longest. */
  readonly maxNs: number;
  /** Buckets that hold something, in ascending order. Only the newest sample has them. */
  readonly buckets: ReadonlyArray<{ readonly fromNs: number; readonly toNs: number; readonly count: number }>;
}

/** Totals since the lab was opened, or its link was changed. */
export interface LabTotals {
  /** Messages completed. */
  readonly messages: number;
  /** Data packets, first or again. */
  readonly packetsSent: number;
  /** Packets the switch lost. */
  readonly packetsDropped: number;
  /** Data packets sent again. */
  readonly packetsRetransmitted: number;
  /** NAKs and SACKs that A received. */
  readonly naks: number;
  /** ACK timeouts. */
  readonly timeouts: number;
  /** Packets that the switch marked. */
  readonly marks: number;
  /** Congestion notifications that reached A. */
  readonly cnps: number;
  /** Pause frames that the switch sent. */
  readonly pauses: number;
}

/** The state of the lab, a few times a second. Rates are means over the last second. */
export interface LabSample {
  /** Counts samples from 1. */
  readonly number: number;
  /** Since the lab was opened. */
  readonly timeNs: number;
  /** In force then. */
  readonly settings: LabSettings;
  /** Payload of completed messages. */
  readonly goodputBps: number;
  /** Payload that left A, first or again, useful or not. */
  readonly linkBps: number;
  /** Data packets sent again. */
  readonly retransmittedPerSecond: number;
  /** Packets the switch lost. */
  readonly droppedPerSecond: number;
  /** What waits in the switch towards B, now. */
  readonly queueBytes: number;
  /** In the order in which they were made. */
  readonly queuePairs: readonly LabQueuePair[];
  /** In the order of the switch. */
  readonly ports: readonly LabPort[];
  /** Since the settings last changed. */
  readonly latency: LabLatency;
  /** Since the lab was opened. */
  readonly totals: LabTotals;
}

/** Something that happened in the lab. */
export interface LabEvent {
  /** Counts events from 1. */
  readonly number: number;
  /** Since the lab was opened. */
  readonly timeNs: number;
  /** For its colour. */
  readonly kind: 'settings' | 'loss' | 'timeout' | 'failure';
  /** In a sentence. */
  readonly text: string;
}

/** A packet as it was seen at the endpoint that sent it. */
export interface LabPacket {
  /** When it was sent, since the first packet of the stretch. */
  readonly timeNs: number;
  /** When the other endpoint received it, likewise; null: it was lost. */
  readonly arrivedNs: number | null;
  /** Which endpoint sent it. */
  readonly from: 'a' | 'b';
  /** BTH opcode by name. */
  readonly operation: string;
  /** As on the wire, 24 bits. */
  readonly psn: number;
  /**
   * Its PSN counted from the first one of its connection, which is 0: numbers that people can follow. Those of one connection never go down
   * except for packets sent again, and never begin anew at 2^24. Null for a CNP, which has no PSN of its own.
   */
  readonly relativePsn: number | null;
  /** Place of its queue pair in `LabSample.queuePairs`. */
  readonly lane: number;
  /** For its colour. */
  readonly kind: 'data' | 'ack' | 'nak' | 'request' | 'cnp';
  /** It did not reach the other endpoint. */
  readonly isDropped: boolean;
  /** The same PSN had been sent before. */
  readonly isRepeated: boolean;
}

/** Neighbouring packets of both directions, in the order they were sent: around a loss if there was one. */
export interface LabPackets {
  /** Oldest first. */
  readonly packets: readonly LabPacket[];
}

/** What settings may be, beside the constants of this file: what the server's registries know. */
export interface LabChoices {
  /** Names of recovery schemes, from those that send most again after a loss to those that send least. */
  readonly schemes: readonly string[];
  /** What each of them does after a loss, in a few words, by its name. */
  readonly schemeSummaries: Readonly<Record<string, string>>;
  /** Names of rate controls. */
  readonly rateControls: readonly string[];
}

/** `GET state`: what a page needs to begin, and what a test compares the page with. */
export interface LabState {
  /** Tells what the page is over. */
  readonly kind: 'lab';
  /** Size of a message. */
  readonly messageBytes: number;
  /** Path MTU in bytes. */
  readonly mtu: number;
  /** How many the sender has. */
  readonly queuePairs: number;
  /** What one may choose. */
  readonly choices: LabChoices;
  /** The newest last. */
  readonly samples: readonly LabSample[];
  /** The newest last. */
  readonly events: readonly LabEvent[];
}

/** `GET stream`: server-sent events of these names. */
export interface LabMessages {
  /** A new sample. */
  readonly sample: LabSample;
  /** Something happened. */
  readonly event: LabEvent;
}
