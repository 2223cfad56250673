/**
 * Messages between the dashboard's server and page about attached programs: plain data for Node and browsers. Rates are
 * means between two readings, about a second apart.
 */

import type { ClusterDetail, ClusterReading } from './cluster-messages.js';

interface SampleBase {
  /** Counts samples of the program from 1. */
  readonly number: number;
  readonly timeNs: number;
  readonly inBps: number;
  readonly outBps: number;
}

export interface AttachedConnection {
  readonly conn: string;
  readonly sentBps: number;
  readonly receivedBps: number;
  readonly rateBps: number | null;
  /** DCQCN's estimate of congestion, 0..1; null without DCQCN. */
  readonly alpha: number | null;
}

export interface EndpointSample extends SampleBase {
  /** By copies to mapped regions, which are not in {@link inBps} or {@link outBps}. */
  readonly copiedBps: number;
  readonly resentPerSecond: number;
  readonly connections: readonly AttachedConnection[];
  readonly totals: {
    readonly copies: number;
    readonly resent: number;
    readonly naks: number;
    readonly rnrNaks: number;
    readonly timeouts: number;
    readonly cnpsSent: number;
    readonly cnpsReceived: number;
    readonly marks: number;
    readonly pauses: number;
    readonly errors: number;
  };
}

export interface AttachedPort {
  readonly name: string;
  readonly receivedBps: number;
  readonly sentBps: number;
  readonly queueBytes: number;
  readonly droppedPerSecond: number;
  readonly markedPerSecond: number;
  readonly pausesSentPerSecond: number;
  readonly pausesReceivedPerSecond: number;
}

export interface SwitchSample extends SampleBase {
  readonly ports: readonly AttachedPort[];
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

export interface AttachedOp {
  readonly op: string;
  readonly perSecond: number;
  readonly bps: number;
}

export interface DiskSample extends SampleBase {
  readonly ops: readonly AttachedOp[];
  readonly totals: {
    readonly requests: number;
    readonly errors: number;
    readonly crcMismatches: number;
    readonly sessions: number;
    readonly failovers: number;
    readonly resentRequests: number;
  };
}

export interface ClusterSample extends SampleBase {
  readonly reading: ClusterReading | null;
}

export interface AttachedLatency {
  readonly op: string;
  readonly count: number;
  readonly p50Ns: number;
  readonly p99Ns: number;
  readonly maxNs: number;
  readonly buckets: ReadonlyArray<{ readonly fromNs: number; readonly toNs: number; readonly count: number }>;
}

export interface AttachedStages {
  readonly op: string;
  /** `share` is 0..1 of the mean; `text` says what happens in the stage. */
  readonly shares: ReadonlyArray<{ readonly stage: string; readonly text: string; readonly share: number }>;
}

export interface AttachedVerdict {
  readonly conn: string;
  readonly op: string;
  readonly owner: string;
  readonly because: string;
  readonly meanNs: number;
}

/** Counts since it has keys. */
export interface AttachedProtection {
  readonly conn: string;
  readonly peer: string;
  readonly cipher: string;
  readonly sendSpi: number;
  readonly receiveSpi: number;
  readonly sealed: number;
  readonly opened: number;
  readonly replayed: number;
  readonly forged: number;
  readonly rekeys: number;
}

export interface EndpointDetail {
  readonly port: string;
  readonly connectionCount: number;
  readonly latency: readonly AttachedLatency[];
  readonly stages: readonly AttachedStages[];
  readonly verdicts: readonly AttachedVerdict[];
  readonly loopDelayP99Ns: number;
  readonly protections: readonly AttachedProtection[];
  readonly protectionDrops: ReadonlyArray<{ readonly reason: string; readonly count: number }>;
}

export interface SwitchPortDetail {
  readonly name: string;
  readonly local: string;
  readonly rateBps: number | null;
  readonly queueBytesMax: number;
  readonly drops: ReadonlyArray<{ readonly reason: string; readonly count: number }>;
  readonly pausesSent: number;
  readonly pausesReceived: number;
  readonly pausedPriorities: readonly number[];
  readonly stormPriorities: readonly number[];
}

export interface SwitchDetail {
  readonly ports: readonly SwitchPortDetail[];
  readonly rules: ReadonlyArray<{ readonly rule: string; readonly hits: number }>;
}

export interface DiskDetail {
  readonly role: 'server' | 'gateway';
  readonly store: string;
  readonly sizeBytes: number;
  readonly latency: readonly AttachedLatency[];
  readonly nbdClients: number;
  readonly connections: { readonly rdma: number; readonly tcp: number };
  readonly path: string | null;
  readonly outage: string | null;
}

export interface AttachedHealth {
  readonly isGood: boolean;
  readonly text: string;
}

interface Program<K extends string, S extends SampleBase, D> {
  readonly id: string;
  readonly kind: K;
  readonly pid: number;
  readonly address: string;
  readonly health: AttachedHealth;
  readonly detail: D;
  readonly samples: readonly S[];
}

export type AttachedEndpoint = Program<'endpoint', EndpointSample, EndpointDetail>;
export type AttachedSwitch = Program<'switch', SwitchSample, SwitchDetail>;
export type AttachedDisk = Program<'disk', DiskSample, DiskDetail>;
export type AttachedCluster = Program<'cluster', ClusterSample, ClusterDetail>;
export type AttachedProgram = AttachedEndpoint | AttachedSwitch | AttachedDisk | AttachedCluster;

export interface AttachedEvent {
  /** Counts events from 1. */
  readonly number: number;
  readonly timeNs: number;
  readonly kind: 'appeared' | 'ended' | 'loss' | 'timeout' | 'failure' | 'slow' | 'notice';
  readonly id: string;
  readonly text: string;
}

export interface AttachedState {
  readonly kind: 'attached';
  readonly which: readonly string[];
  readonly programs: readonly AttachedProgram[];
  readonly events: readonly AttachedEvent[];
}

export interface AttachedMessages {
  readonly program: AttachedProgram;
  readonly gone: { readonly id: string };
  readonly event: AttachedEvent;
}
