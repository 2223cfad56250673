/**
 * What the dashboard's server and its page tell each other about running programs that let themselves be watched: endpoints, switches, disks,
 * clusters. Plain data, understood by Node and by browsers. Rates are means between two readings, about a second apart.
 */

import type { ClusterDetail, ClusterReading } from './cluster.js';

/** Common to the samples of all kinds. */
interface SampleBase {
  /** Counts samples of the program from 1. */
  readonly number: number;
  /** Since the dashboard was opened. */
  readonly timeNs: number;
  /** What goes into the program and comes out of it: an endpoint's UDP payload, a switch's frames, data written to a disk and read from it, space that nodes fill and free. */
  readonly inBps: number;
  readonly outBps: number;
}

/** One connection of an endpoint. */
export interface AttachedConnection {
  /** Its name. */
  readonly conn: string;
  /** UDP payload sent. */
  readonly sentBps: number;
  /** UDP payload received. */
  readonly receivedBps: number;
  /** The rate at which it may send; null: not limited. */
  readonly rateBps: number | null;
  /** DCQCN's estimate of congestion, 0..1; null without DCQCN. */
  readonly alpha: number | null;
}

/** An endpoint over one interval. */
export interface EndpointSample extends SampleBase {
  /** Packets sent again. */
  readonly resentPerSecond: number;
  /** The busiest of those that are open, in the order in which they were opened. */
  readonly connections: readonly AttachedConnection[];
  /** Since the endpoint was opened. */
  readonly totals: {
    /** Packets sent again. */
    readonly resent: number;
    /** PSN sequence errors and SACKs received. */
    readonly naks: number;
    /** RNR NAKs received. */
    readonly rnrNaks: number;
    /** ACK timeouts. */
    readonly timeouts: number;
    /** Congestion notifications sent. */
    readonly cnpsSent: number;
    /** Congestion notifications received. */
    readonly cnpsReceived: number;
    /** Packets that arrived with a mark. */
    readonly marks: number;
    /** Pause frames received. */
    readonly pauses: number;
    /** Work requests that failed. */
    readonly errors: number;
  };
}

/** One port of a switch. */
export interface AttachedPort {
  /** As the switch calls it. */
  readonly name: string;
  /** Frames that came in. */
  readonly receivedBps: number;
  /** Frames that left. */
  readonly sentBps: number;
  /** What waits to leave through it. */
  readonly queueBytes: number;
  /** Frames dropped, for whatever reason. */
  readonly droppedPerSecond: number;
  /** Frames marked. */
  readonly markedPerSecond: number;
  /** Pause frames to the neighbour. */
  readonly pausesSentPerSecond: number;
  /** Pause frames of the neighbour. */
  readonly pausesReceivedPerSecond: number;
}

/** A switch over one interval. */
export interface SwitchSample extends SampleBase {
  /** In the order of the switch. */
  readonly ports: readonly AttachedPort[];
  /** Since the switch was opened, over all ports; `queueBytes` is now. */
  readonly totals: {
    /** Frames that came in. */
    readonly packets: number;
    /** Frames dropped. */
    readonly dropped: number;
    /** Frames marked. */
    readonly marked: number;
    /** Pause frames sent. */
    readonly pausesSent: number;
    /** Pause frames received. */
    readonly pausesReceived: number;
    /** Pause storms that began. */
    readonly storms: number;
    /** Bytes that wait in it. */
    readonly queueBytes: number;
  };
}

/** One operation of a disk. */
export interface AttachedOp {
  /** Its name. */
  readonly op: string;
  /** Requests. */
  readonly perSecond: number;
  /** Data moved. */
  readonly bps: number;
}

/** A disk program over one interval. */
export interface DiskSample extends SampleBase {
  /** By operation. */
  readonly ops: readonly AttachedOp[];
  /** Since the program was started; `sessions` is now. */
  readonly totals: {
    /** Requests that reached the disk. */
    readonly requests: number;
    /** Those of them that failed. */
    readonly errors: number;
    /** Data that was not what its sender had checked. */
    readonly crcMismatches: number;
    /** Connections by either transport. */
    readonly sessions: number;
    /** Times that RDMA failed and TCP took over. */
    readonly failovers: number;
    /** Requests sent again over a new connection. */
    readonly resentRequests: number;
  };
}

/** A manager of a cluster over one interval. */
export interface ClusterSample extends SampleBase {
  /** Null: it does not lead, or cannot tell. */
  readonly reading: ClusterReading | null;
}

/** Latency of one operation in the last minute or two. */
export interface AttachedLatency {
  /** Its name. */
  readonly op: string;
  /** Samples. */
  readonly count: number;
  /** Median. */
  readonly p50Ns: number;
  /** 99th percentile. */
  readonly p99Ns: number;
  /** Largest sample. */
  readonly maxNs: number;
  /** Those that hold something, in ascending order; `toNs` is exclusive. */
  readonly buckets: ReadonlyArray<{ readonly fromNs: number; readonly toNs: number; readonly count: number }>;
}

/** Which part of the latency of an operation each stage is, first to last. */
export interface AttachedStages {
  /** Its name. */
  readonly op: string;
  /** `share` is 0..1 of the mean; `text` says what happens in the stage. */
  readonly shares: ReadonlyArray<{ readonly stage: string; readonly text: string; readonly share: number }>;
}

/** Who owns the latency of a connection and operation. */
export interface AttachedVerdict {
  /** Name of the connection. */
  readonly conn: string;
  /** Name of the operation. */
  readonly op: string;
  /** Sender, pacing, network, responder or application. */
  readonly owner: string;
  /** Why, in a sentence. */
  readonly because: string;
  /** Posted to polled. */
  readonly meanNs: number;
}

/** What protects the packets of a connection (docs/security.md). Counts since it has keys. */
export interface AttachedProtection {
  /** Name of the connection. */
  readonly conn: string;
  /** Who the peer has proven to be. */
  readonly peer: string;
  /** Name of the cipher. */
  readonly cipher: string;
  /** SPI of what is sent. */
  readonly sendSpi: number;
  /** SPI of what is received. */
  readonly receiveSpi: number;
  /** Packets sent. */
  readonly sealed: number;
  /** Packets received. */
  readonly opened: number;
  /** Packets dropped because they were repeated. */
  readonly replayed: number;
  /** Packets dropped because the peer has not sealed them. */
  readonly forged: number;
  /** Changes of keys. */
  readonly rekeys: number;
}

/** An endpoint as it is now. */
export interface EndpointDetail {
  /** For people: what carries the packets. */
  readonly port: string;
  /** Open ones; the samples show the busiest. */
  readonly connectionCount: number;
  /** By operation. */
  readonly latency: readonly AttachedLatency[];
  /** By operation. */
  readonly stages: readonly AttachedStages[];
  /** The slowest first. */
  readonly verdicts: readonly AttachedVerdict[];
  /** How late its event loop is, 99th percentile. */
  readonly loopDelayP99Ns: number;
  /** Of the connections whose packets are protected, the first ones. */
  readonly protections: readonly AttachedProtection[];
  /** Packets that the endpoint dropped because they were not protected as they should be, by reason (`plain`, `forged` ...), of those that happened. */
  readonly protectionDrops: ReadonlyArray<{ readonly reason: string; readonly count: number }>;
}

/** A port of a switch as it is now. */
export interface SwitchPortDetail {
  /** As the switch calls it. */
  readonly name: string;
  /** `HOST:PORT` of its socket. */
  readonly local: string;
  /** Emulated link rate; null: as fast as software is. */
  readonly rateBps: number | null;
  /** The longest queue of one priority so far. */
  readonly queueBytesMax: number;
  /** By reason, of those that happened, since the switch was opened. */
  readonly drops: ReadonlyArray<{ readonly reason: string; readonly count: number }>;
  /** Pause frames since the switch was opened. */
  readonly pausesSent: number;
  /** The neighbour's pause frames since then. */
  readonly pausesReceived: number;
  /** Priorities that the neighbour has paused now. */
  readonly pausedPriorities: readonly number[];
  /** Priorities in a pause storm now. */
  readonly stormPriorities: readonly number[];
}

/** A switch as it is now. */
export interface SwitchDetail {
  /** In the order of the switch. */
  readonly ports: readonly SwitchPortDetail[];
  /** Fault rules, and how often each has struck. */
  readonly rules: ReadonlyArray<{ readonly rule: string; readonly hits: number }>;
}

/** A disk program as it is now. */
export interface DiskDetail {
  /** A storage server, or an NBD gateway. */
  readonly role: 'server' | 'gateway';
  /** For people: where the data is. */
  readonly store: string;
  /** What the disk holds. */
  readonly sizeBytes: number;
  /** By operation. */
  readonly latency: readonly AttachedLatency[];
  /** Of a gateway: clients connected now. */
  readonly nbdClients: number;
  /** Connections to clients, or of a gateway to its server, by transport. */
  readonly connections: { readonly rdma: number; readonly tcp: number };
  /** Of a gateway to a storage server: the state of its RDMA path. */
  readonly path: string | null;
  /** Of a gateway: why its storage server cannot be reached now. */
  readonly outage: string | null;
}

/** A word on how a program does. */
export interface AttachedHealth {
  /** Nothing to look into. */
  readonly isGood: boolean;
  /** In a few words. */
  readonly text: string;
}

interface Program<K extends string, S extends SampleBase, D> {
  /** Unlike any other, also of a program that was at the same place before. */
  readonly id: string;
  readonly kind: K;
  readonly pid: number;
  readonly address: string;
  readonly health: AttachedHealth;
  readonly detail: D;
  /** Four minutes of them, the newest last; none until it was read twice. */
  readonly samples: readonly S[];
}

/** An endpoint that is followed. */
export type AttachedEndpoint = Program<'endpoint', EndpointSample, EndpointDetail>;
/** A switch that is followed. */
export type AttachedSwitch = Program<'switch', SwitchSample, SwitchDetail>;
/** A disk program that is followed. */
export type AttachedDisk = Program<'disk', DiskSample, DiskDetail>;
/** A manager of a cluster that is followed. */
export type AttachedCluster = Program<'cluster', ClusterSample, ClusterDetail>;
/** A program of any kind. */
export type AttachedProgram = AttachedEndpoint | AttachedSwitch | AttachedDisk | AttachedCluster;

/** Something that happened to a program. */
export interface AttachedEvent {
  /** Counts events from 1. */
  readonly number: number;
  /** Since the dashboard was opened. */
  readonly timeNs: number;
  /** For its colour. */
  readonly kind: 'appeared' | 'ended' | 'loss' | 'timeout' | 'failure' | 'slow' | 'notice';
  /** The program it happened to. */
  readonly id: string;
  /** In a sentence. */
  readonly text: string;
}

/** `GET state`: what a page needs to begin, and what a test compares the page with. */
export interface AttachedState {
  /** Tells what the page is over. */
  readonly kind: 'attached';
  /** Which programs are looked for; empty: all of this user on this host. */
  readonly which: readonly string[];
  /** Those that answer. */
  readonly programs: readonly AttachedProgram[];
  /** The newest last. */
  readonly events: readonly AttachedEvent[];
}

/** `GET stream`: server-sent events of these names. */
export interface AttachedMessages {
  /** A program was read: as in the state, but of its samples only the newest. */
  readonly program: AttachedProgram;
  /** A program ended, or answers no more. */
  readonly gone: { readonly id: string };
  /** Something happened. */
  readonly event: AttachedEvent;
}
