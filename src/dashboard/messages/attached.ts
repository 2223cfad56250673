/**
 * What the dashboard's server and its page tell each other about running programs that let themselves be watched: endpoints, switches, disks.
 * Plain data, understood by Node and by browsers. Rates are means between two readings, about a second apart.
 */

/** Common to the samples of all kinds. */
interface SampleBase {
  /** Counts samples of the program from 1. */
  readonly number: number;
  /** Since the dashboard was opened. */
  readonly timeNs: number;
  /** What goes into the program and comes out of it: an endpoint's UDP payload, a switch's frames, data written to a disk and read from it. */
  readonly inBps: number;
  readonly outBps: number;
}

/** One connection of an endpoint. */
export interface AttachedConnection {
  readonly conn: string;
  /** UDP payload. */
  readonly sentBps: number;
  readonly receivedBps: number;
  /** The rate at which it may send; null: not limited. */
  readonly rateBps: number | null;
  /** DCQCN's estimate of congestion, 0..1; null without DCQCN. */
  readonly alpha: number | null;
}

export interface EndpointSample extends SampleBase {
  readonly resentPerSecond: number;
  /** The busiest of those that are open, in the order in which they were opened. */
  readonly connections: readonly AttachedConnection[];
  /** Since the endpoint was opened. */
  readonly totals: {
    readonly resent: number;
    /** PSN sequence errors and SACKs received, and RNR NAKs received. */
    readonly naks: number;
    readonly rnrNaks: number;
    readonly timeouts: number;
    readonly cnpsSent: number;
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
  readonly name: string;
  readonly receivedBps: number;
  readonly sentBps: number;
  /** What waits to leave through it. */
  readonly queueBytes: number;
  readonly droppedPerSecond: number;
  readonly markedPerSecond: number;
  readonly pausesSentPerSecond: number;
  readonly pausesReceivedPerSecond: number;
}

export interface SwitchSample extends SampleBase {
  readonly ports: readonly AttachedPort[];
  /** Since the switch was opened, over all ports; `queueBytes` is now. */
  readonly totals: {
    readonly packets: number;
    readonly dropped: number;
    readonly marked: number;
    readonly pausesSent: number;
    readonly pausesReceived: number;
    readonly storms: number;
    readonly queueBytes: number;
  };
}

/** One operation of a disk. */
export interface AttachedOp {
  readonly op: string;
  readonly perSecond: number;
  readonly bps: number;
}

export interface DiskSample extends SampleBase {
  readonly ops: readonly AttachedOp[];
  /** Since the program was started; `sessions` is now. */
  readonly totals: {
    readonly requests: number;
    readonly errors: number;
    readonly crcMismatches: number;
    readonly sessions: number;
    readonly failovers: number;
    readonly resentRequests: number;
  };
}

/** Latency of one operation in the last minute or two. */
export interface AttachedLatency {
  readonly op: string;
  readonly count: number;
  readonly p50Ns: number;
  readonly p99Ns: number;
  readonly maxNs: number;
  readonly buckets: ReadonlyArray<{ readonly fromNs: number; readonly toNs: number; readonly count: number }>;
}

/** Which part of the latency of an operation each stage is, first to last. */
export interface AttachedStages {
  readonly op: string;
  readonly shares: ReadonlyArray<{ readonly stage: string; readonly text: string; readonly share: number }>;
}

/** Who owns the latency of a connection and operation. */
export interface AttachedVerdict {
  readonly conn: string;
  readonly op: string;
  readonly owner: string;
  readonly because: string;
  readonly meanNs: number;
}

export interface EndpointDetail {
  /** For people: what carries the packets. */
  readonly port: string;
  /** Open ones; the samples show the busiest. */
  readonly connectionCount: number;
  readonly latency: readonly AttachedLatency[];
  readonly stages: readonly AttachedStages[];
  /** The slowest first. */
  readonly verdicts: readonly AttachedVerdict[];
  readonly loopDelayP99Ns: number;
}

export interface SwitchPortDetail {
  readonly name: string;
  readonly local: string;
  /** Emulated link rate; null: as fast as software is. */
  readonly rateBps: number | null;
  /** The longest queue of one priority so far. */
  readonly queueBytesMax: number;
  /** By reason, of those that happened, since the switch was opened. */
  readonly drops: ReadonlyArray<{ readonly reason: string; readonly count: number }>;
  /** Since the switch was opened. */
  readonly pausesSent: number;
  readonly pausesReceived: number;
  /** Priorities that the neighbour has paused now, and those in a pause storm. */
  readonly pausedPriorities: readonly number[];
  readonly stormPriorities: readonly number[];
}

export interface SwitchDetail {
  readonly ports: readonly SwitchPortDetail[];
  /** Fault rules, and how often each has struck. */
  readonly rules: ReadonlyArray<{ readonly rule: string; readonly hits: number }>;
}

export interface DiskDetail {
  readonly role: 'server' | 'gateway';
  readonly store: string;
  readonly sizeBytes: number;
  readonly latency: readonly AttachedLatency[];
  readonly nbdClients: number;
  readonly connections: { readonly rdma: number; readonly tcp: number };
  /** Of a gateway to a storage server: the state of its RDMA path. */
  readonly path: string | null;
}

/** A word on how a program does. */
export interface AttachedHealth {
  readonly isGood: boolean;
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

export type AttachedEndpoint = Program<'endpoint', EndpointSample, EndpointDetail>;
export type AttachedSwitch = Program<'switch', SwitchSample, SwitchDetail>;
export type AttachedDisk = Program<'disk', DiskSample, DiskDetail>;
export type AttachedProgram = AttachedEndpoint | AttachedSwitch | AttachedDisk;

export interface AttachedEvent {
  /** Counts events from 1. */
  readonly number: number;
  readonly timeNs: number;
  readonly kind: 'appeared' | 'ended' | 'loss' | 'timeout' | 'failure' | 'slow' | 'notice';
  /** The program it happened to. */
  readonly id: string;
  readonly text: string;
}

/** `GET state`: what a page needs to begin, and what a test compares the page with. */
export interface AttachedState {
  readonly kind: 'attached';
  /** Which programs are looked for; empty: all of this user on this host. */
  readonly which: readonly string[];
  readonly programs: readonly AttachedProgram[];
  /** The newest last. */
  readonly events: readonly AttachedEvent[];
}

/** `GET stream`: server-sent events of these names. */
export interface AttachedMessages {
  /** A program was read: as in the state, but of its samples only the newest. */
  readonly program: AttachedProgram;
  readonly gone: { readonly id: string };
  readonly event: AttachedEvent;
}
