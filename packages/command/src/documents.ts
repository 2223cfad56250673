/**
 * The documents of `--json`: by the name of its schema, what a command adds to the head. `npm run schemas` makes `schemas/*.json` of these
 * types and their comments.
 */

import type { DiskServer, TransferResult, WindowResult } from '@rocev2/cli';
import type {
  ExtentsAppendResult,
  ExtentsDiskCopyResult,
  ExtentsDiskCreateResult,
  ExtentsDiskListResult,
  ExtentsDiskRemoveResult,
  ExtentsListResult,
  ExtentsManagerResult,
  ExtentsNodeResult,
  ExtentsReadResult,
  ExtentsRemoveResult,
  ExtentsStatusResult,
  ExtentsUpResult,
} from '@rocev2/extents';
import type {
  AuditReport,
  ConformMatrixResult,
  ConformRunResult,
  ConformServeResult,
  Examination,
  Need,
  OpenedPackets,
} from '@rocev2/inspect';
import type { KvBenchResult, KvEntryResult, KvListResult, KvServeResult, KvSetResult, KvWatchResult } from '@rocev2/kv';
import type {
  BufferPools,
  Comparison,
  FigureResults,
  FluidResult,
  LivelockRun,
  LiveSwitchPortCounters,
  ScenarioFile,
  ScenarioResult,
  SweepResult,
  SwitchPortSnapshot,
  VerifiedOperations,
} from '@rocev2/lab';
import type { ControllerIdentity, DiscoveredSubsystem, NamespaceCounters, NamespaceIdentity } from '@rocev2/nvme';
import type { CaptureDamage, DecodedPacket, FlowEvent, FlowSummary, TraceRecord } from 'rocev2/internal/capture';
import type { Diagnosis, Dump, EstatsSnapshot, HistogramDocument } from 'rocev2/internal/estats';
import type { NbdCounters } from 'rocev2/internal/nbd';
import type { SkServerCounters, StorageClientReport } from 'rocev2/internal/storage-rpc';
import type { BenchRow } from './disk/bench-run.js';
import type { DocumentHead } from './document-head.js';
import type { HostReport } from './host-report.js';

/** The fields of `audit --json`. */
export interface AuditResult extends AuditReport {
  /** The capture, as named on the command line. */
  readonly file: string;
  /** With --keys: what the keys made of protected packets. */
  readonly protected?: OpenedPackets;
  /** Where and why reading ended before the end of the file. */
  readonly damage?: CaptureDamage;
}

/** A case of `conform list --json`. */
export interface ListedCase {
  /** Its name: subject and variant. */
  readonly name: string;
  /** The rules that it judges. */
  readonly rules: readonly number[];
  /** What it is about. */
  readonly about: string;
  /** What it needs beyond a connection. */
  readonly needs: readonly Need[];
}

/** The fields of `conform list --json`. */
export interface ConformListResult {
  /** All cases, in the order in which they are run. */
  readonly cases: readonly ListedCase[];
}

/** The fields of `doctor --json`. */
export interface DoctorResult extends Examination {
  /** The host that was examined, as named on the command line. */
  readonly target: string;
}

/** The fields of `icrc --json`. */
export interface IcrcResult {
  /** The right ICRC as it travels, 8 hex digits. */
  readonly computed: string;
  /** The ICRC in the packet, 8 hex digits. */
  readonly carried: string;
  /** Whether they are the same. */
  readonly isRight: boolean;
}

/** The fields of `rping --json`, and with `transport` those of `pingpong --json`. */
export interface PingResult {
  /** Role of this side. */
  readonly role: 'client' | 'server';
  /** IP address of the peer. */
  readonly peer: string;
  /** Number of pings, or of messages each way. */
  readonly iterations: number;
  /** Size of a ping or message in bytes. */
  readonly sizeBytes: number;
  /** Time from the first to the last. */
  readonly seconds: number;
  /** Whether the contents were checked and correct. False if nothing was checked. */
  readonly verified: boolean;
}

/** The fields of `pingpong --json`. */
export interface PingpongResult extends PingResult {
  /** Transport of the queue pair. */
  readonly transport: 'rc' | 'uc' | 'ud';
}

/** The fields of `srq-pingpong --json`. */
export interface SrqPingpongResult extends PingResult {
  /** Number of queue pairs that share the receive queue. */
  readonly queuePairs: number;
}

/** The fields of `ucmatose --json`. */
export interface UcmatoseResult {
  /** Role of this side. */
  readonly role: 'client' | 'server';
  /** IP address of the peer. */
  readonly peer: string;
  /** Number of simultaneous connections. */
  readonly connections: number;
  /** Messages each way on each connection. */
  readonly iterations: number;
  /** Size of a message in bytes. */
  readonly sizeBytes: number;
  /** Time from the first message to the end of the last connection. */
  readonly seconds: number;
}

/** The fields of `udaddy --json`. */
export interface UdaddyResult {
  /** This side. */
  readonly role: 'client' | 'server';
  /** IP address of the other side; of several, the one that came first. */
  readonly peer: string;
  /** Clients of the server, or queue pairs of the client. */
  readonly connections: number;
  /** Datagrams each way on each connection. */
  readonly iterations: number;
  /** Bytes of a datagram. */
  readonly sizeBytes: number;
  /** From the first datagram to the last. */
  readonly seconds: number;
}

/** The fields of `cmtime --json`. */
export interface CmtimeResult {
  /** Role of this side. */
  readonly role: 'client' | 'server';
  /** IP address of the peer. */
  readonly peer: string;
  /** Number of simultaneous connections. */
  readonly connections: number;
  /** The steps in order; empty on the server, which does not measure. */
  readonly steps: readonly CmtimeStep[];
}

/** One step, which all connections take at the same time. */
export interface CmtimeStep {
  /** Name of the step: `create qp`, `connect`, `disconnect`, `destroy`. */
  readonly name: string;
  /** Time from the start of the step until the last connection has done it, in nanoseconds. */
  readonly totalNs: number;
  /** Time of the fastest connection. */
  readonly minNs: number;
  /** Time of the slowest connection. */
  readonly maxNs: number;
}

/** The fields of `switch --json`. */
export interface SwitchResult {
  /** How long the switch ran. */
  readonly seconds: number;
  /** The ports, in the order of the command line. */
  readonly ports: readonly SwitchPortResult[];
  /** The shared buffer; missing without one. */
  readonly pools?: BufferPools | undefined;
  /** The fault rules, and how often each one applied. */
  readonly rules: readonly RuleHits[];
}

/** One port of a switch. */
export interface SwitchPortResult extends SwitchPortSnapshot {
  /** Name of the port. */
  readonly name: string;
  /** `HOST:PORT` of its socket. */
  readonly local: string;
  /** Counters of the port; docs/switch.md explains them. */
  readonly counters: LiveSwitchPortCounters;
}

/** The fields of `wire --json`. */
export interface WireResult {
  /** How long the wire was there. */
  readonly seconds: number;
  /** Sides a and b. */
  readonly sides: readonly WireSideResult[];
  /** The fault rules, and how often each one applied. */
  readonly rules: readonly RuleHits[];
  /** With --pcap: the file, and frames of which the disk was too slow. */
  readonly capture?: { readonly file: string; readonly dropped: number } | undefined;
  /** With --audit: what was found. Numbers of packets are those of the capture. */
  readonly audit?: AuditReport | undefined;
}

/** One side of a wire. */
export interface WireSideResult extends SwitchPortSnapshot {
  /** `a` or `b`. */
  readonly name: string;
  /** Name of the interface, `HOST:PORT` of the socket, or address of the peer. */
  readonly link: string;
  /** Counters of the side; docs/switch.md explains them. */
  readonly counters: LiveSwitchPortCounters;
}

/** A fault rule. */
export interface RuleHits {
  /** The rule as it was written. */
  readonly rule: string;
  /** How often the rule applied. */
  readonly hits: number;
}

/** The fields of `livelock --json`. */
export interface LivelockResult {
  /** The runs, in the order in which they were made. */
  readonly runs: readonly LivelockRun[];
  /** Packets per second of the lossless references. */
  readonly references: Comparison['references'];
}

/** The fields of `demo --json`. */
export interface DemoResult {
  /** Whether every byte was correct, and only go-back-0 delivered nothing. */
  readonly verified: boolean;
  /** First part: every operation, verified. */
  readonly operations: VerifiedOperations;
  /** Second part: the livelock of go-back-0. */
  readonly livelock: Comparison;
}

/** The fields of `sim list --json`. */
export interface ScenarioList {
  /** Scenario files, as docs/lab.md describes them. */
  readonly scenarios: readonly ScenarioFile[];
}

/** The fields of `sim sweep --json`. */
export interface SweepResults {
  /** The results, in the order of the points. */
  readonly runs: readonly SweepResult[];
}

/** The fields of `disk serve --json`. */
export interface DiskServeResult extends SkServerCounters {
  /** TCP port of the server. */
  readonly port: number;
  /** Size of the disk. */
  readonly sizeBytes: number;
  /** How long the server ran. */
  readonly seconds: number;
}

/** The fields of `nvme target --json`: what a target served. */
export interface NvmeTargetResult {
  /** Addresses of its discovery log page. */
  readonly ports: ReadonlyArray<{
    /** Transport of connections to it. */
    readonly transport: 'rdma' | 'tcp';
    /** IP address. */
    readonly address: string;
    /** Port of RDMA_PS_TCP, or of TCP. */
    readonly port: number;
  }>;
  /** In the order of the command line. */
  readonly subsystems: ReadonlyArray<{
    /** NVMe qualified name. */
    readonly nqn: string;
    /** Its namespaces. */
    readonly namespaces: readonly NamespaceCounters[];
  }>;
  /** Time from the start to Ctrl-C. */
  readonly seconds: number;
  /** Queues that connected. */
  readonly queues: number;
  /** Commands that came in. */
  readonly commands: number;
  /** Commands that were answered with an error, hosts' probing among them. */
  readonly refused: number;
  /** Rules of `--fault`, in their order. */
  readonly faults: ReadonlyArray<{
    /** As it was written. */
    readonly rule: string;
    /** Commands that it struck. */
    readonly struck: number;
  }>;
}

/** The fields of `nvme change --json`. */
export interface NvmeChangeResult {
  /** What the target did, in words. */
  readonly done: string;
}

/** The fields of `nvme bench --json`. */
export interface NvmeBenchResult {
  /** The median run of each combination. */
  readonly rows: readonly BenchRow[];
}

/** The fields of `nvme discover --json`. */
export interface NvmeDiscoverResult {
  /** In the order of the discovery log page. */
  readonly subsystems: readonly DiscoveredSubsystem[];
}

/** The fields of `nvme list --json`. */
export interface NvmeListResult {
  /** NQN of the subsystem. */
  readonly nqn: string;
  /** Ascending by ID. */
  readonly namespaces: readonly NamespaceIdentity[];
}

/** The fields of `disk nbd --json`. */
export interface DiskNbdResult extends NbdCounters {
  /** NBD URI of the disk. */
  readonly uri: string;
  /** Size of the disk. */
  readonly sizeBytes: number;
  /** How long the server ran. */
  readonly seconds: number;
  /** The connection to the storage server; missing if the gateway has its own disk. */
  readonly storage?: StorageClientReport;
}

/** The fields of `disk ls`, `create`, `resize` and `rm --json`. */
export interface DiskListResult {
  /** Storage servers, each with all of its disks with names. */
  readonly servers: readonly DiskServer[];
}

/** The fields of `disk bench --json`. */
export interface DiskBenchResult {
  /** One row for each combination of disk, operation, block size and queue depth. */
  readonly rows: readonly BenchRow[];
}

/** The program that a part of a document describes. */
export interface EndpointName {
  /** Process number. */
  readonly pid: number;
  /** IP address of the endpoint. */
  readonly address: string;
}

/** What `estats hist --json` prints for one process. */
export interface EndpointHistogram extends EndpointName, HistogramDocument {}

/** What `estats dump --json` prints for one process. */
export interface EndpointDumps extends EndpointName {
  /** The dumps, oldest first. */
  readonly dumps: readonly Dump[];
}

/** What `estats diagnose --json` prints for one process. */
export interface EndpointDiagnosis extends EndpointName {
  /** One entry for each connection and operation. */
  readonly connections: readonly Diagnosis[];
}

/** The fields of `estats top|hist|dump|diagnose --json`. */
export interface Endpoints<T> {
  /** One entry for each endpoint that answered. */
  readonly endpoints: readonly T[];
}

/** The fields of `dashboard --json`, printed when the page can be opened. */
export interface DashboardResult {
  /** URL of the page. */
  readonly url: string;
}

/** The fields of `report --json`. */
export interface ReportResult {
  /** Path of the page. */
  readonly page: string;
  /** The sections of the page. */
  readonly sections: ReadonlyArray<{
    /** File name of the document. */
    readonly file: string;
    /** Heading of the section. */
    readonly title: string;
  }>;
}

/** The last line of `decode --json`, the only one with a head. */
export interface DecodeSummary {
  /** Type of the line. */
  readonly type: 'summary';
  /** Capture: number of RoCEv2 packets, including those that --flow leaves out. */
  readonly packets?: number;
  /** Capture: number of other packets. */
  readonly otherPackets?: number;
  /** Capture: one entry for each flow, that is, each direction to a queue pair. */
  readonly flows?: readonly FlowSummary[];
  /** Capture, with --keys: what the keys made of protected packets. */
  readonly protected?: OpenedPackets;
  /** Capture: where and why the file cannot be read further; missing for an intact file. */
  readonly damage?: CaptureDamage;
  /** Trace: how often each event happened, by name. */
  readonly events?: Readonly<Record<string, number>>;
}

/** A line of `decode --json` for a packet of a capture. 64-bit values are decimal strings. */
export interface PacketLine extends DecodedPacket {
  /** Type of the line. */
  readonly type: 'packet';
  /** Comment of the packet in the file. */
  readonly comment?: string;
  /** Events at this packet, such as gaps and retransmissions. */
  readonly events: readonly FlowEvent[];
}

/** A line of `decode --json` for an event of a trace. */
export interface EventLine extends TraceRecord {
  /** Type of the line. */
  readonly type: 'event';
}

/** The fields of `bw --json` and `lat --json`, the same on both sides. The client measures; a rocev2 server gets the figures from it. */
export interface TransferDocument extends TransferResult {
  /** Role of this side. */
  readonly role: 'client' | 'server';
  /** Names of fields that this side cannot know, because perftest does not send them: they are null or false. Empty between two rocev2 programs. */
  readonly unknown: ReadonlyArray<keyof TransferResult>;
  /** With --all: the result of each size. The other fields are those of the last size. */
  readonly sizes?: readonly TransferResult[];
  /** With --perftest: why the test did not finish; missing if it did. */
  readonly unfinished?: string;
}

/** By name of the schema. */
export interface Results {
  /** `rocev2 bw`. */
  readonly bw: TransferDocument;
  /** `rocev2 lat`. */
  readonly lat: TransferDocument;
  /** `rocev2 pingpong`. */
  readonly pingpong: PingpongResult;
  /** `rocev2 srq-pingpong`. */
  readonly 'srq-pingpong': SrqPingpongResult;
  /** `rocev2 rping`. */
  readonly rping: PingResult;
  /** `rocev2 ucmatose`. */
  readonly ucmatose: UcmatoseResult;
  /** `rocev2 udaddy`. */
  readonly udaddy: UdaddyResult;
  /** `rocev2 cmtime`. */
  readonly cmtime: CmtimeResult;
  /** `rocev2 decode`, its last line. */
  readonly decode: DecodeSummary;
  /** `rocev2 audit`. */
  readonly audit: AuditResult;
  /** `rocev2 conform serve`. */
  readonly 'conform-serve': ConformServeResult;
  /** `rocev2 conform run`. */
  readonly 'conform-run': ConformRunResult;
  /** `rocev2 conform matrix`. */
  readonly 'conform-matrix': ConformMatrixResult;
  /** `rocev2 conform list`. */
  readonly 'conform-list': ConformListResult;
  /** `rocev2 info`. */
  readonly info: HostReport;
  /** `rocev2 doctor`. */
  readonly doctor: DoctorResult;
  /** `rocev2 icrc`. */
  readonly icrc: IcrcResult;
  /** `rocev2 demo`. */
  readonly demo: DemoResult;
  /** `rocev2 livelock`. */
  readonly livelock: LivelockResult;
  /** `rocev2 switch`. */
  readonly switch: SwitchResult;
  /** `rocev2 wire`. */
  readonly wire: WireResult;
  /** `rocev2 window`. */
  readonly window: WindowResult;
  /** `rocev2 fluid`. */
  readonly fluid: FluidResult;
  /** `rocev2 sim run`. */
  readonly 'sim-run': ScenarioResult;
  /** `rocev2 sim list`. */
  readonly 'sim-list': ScenarioList;
  /** `rocev2 sim sweep`. */
  readonly 'sim-sweep': SweepResults;
  /** `rocev2 sim figure`. */
  readonly 'sim-figure': FigureResults;
  /** `rocev2 disk serve`. */
  readonly 'disk-serve': DiskServeResult;
  /** `rocev2 disk nbd`. */
  readonly 'disk-nbd': DiskNbdResult;
  /** `rocev2 disk ls`. */
  readonly 'disk-ls': DiskListResult;
  /** `rocev2 disk create`. */
  readonly 'disk-create': DiskListResult;
  /** `rocev2 disk resize`. */
  readonly 'disk-resize': DiskListResult;
  /** `rocev2 disk rm`. */
  readonly 'disk-rm': DiskListResult;
  /** `rocev2 disk bench`. */
  readonly 'disk-bench': DiskBenchResult;
  /** `rocev2 nvme target`. */
  readonly 'nvme-target': NvmeTargetResult;
  /** `rocev2 nvme change`. */
  readonly 'nvme-change': NvmeChangeResult;
  /** `rocev2 nvme bench`. */
  readonly 'nvme-bench': NvmeBenchResult;
  /** `rocev2 nvme discover`. */
  readonly 'nvme-discover': NvmeDiscoverResult;
  /** `rocev2 nvme list`. */
  readonly 'nvme-list': NvmeListResult;
  /** `rocev2 nvme id-ctrl`. */
  readonly 'nvme-id-ctrl': ControllerIdentity;
  /** `rocev2 kv serve`. */
  readonly 'kv-serve': KvServeResult;
  /** `rocev2 kv get`. */
  readonly 'kv-get': KvEntryResult;
  /** `rocev2 kv set`. */
  readonly 'kv-set': KvSetResult;
  /** `rocev2 kv list`. */
  readonly 'kv-list': KvListResult;
  /** `rocev2 kv watch`. */
  readonly 'kv-watch': KvWatchResult;
  /** `rocev2 kv bench`. */
  readonly 'kv-bench': KvBenchResult;
  /** `rocev2 extents up`. */
  readonly 'extents-up': ExtentsUpResult;
  /** `rocev2 extents manager`. */
  readonly 'extents-manager': ExtentsManagerResult;
  /** `rocev2 extents node`. */
  readonly 'extents-node': ExtentsNodeResult;
  /** `rocev2 extents status`. */
  readonly 'extents-status': ExtentsStatusResult;
  /** `rocev2 extents ls`. */
  readonly 'extents-ls': ExtentsListResult;
  /** `rocev2 extents append`. */
  readonly 'extents-append': ExtentsAppendResult;
  /** `rocev2 extents read`. */
  readonly 'extents-read': ExtentsReadResult;
  /** `rocev2 extents rm`. */
  readonly 'extents-rm': ExtentsRemoveResult;
  /** `rocev2 extents disk create`. */
  readonly 'extents-disk-create': ExtentsDiskCreateResult;
  /** `rocev2 extents disk ls`. */
  readonly 'extents-disk-ls': ExtentsDiskListResult;
  /** `rocev2 extents disk snapshot`. */
  readonly 'extents-disk-snapshot': ExtentsDiskCopyResult;
  /** `rocev2 extents disk clone`. */
  readonly 'extents-disk-clone': ExtentsDiskCopyResult;
  /** `rocev2 extents disk rm`. */
  readonly 'extents-disk-rm': ExtentsDiskRemoveResult;
  /** `rocev2 estats top`. */
  readonly 'estats-top': Endpoints<EstatsSnapshot>;
  /** `rocev2 estats hist`. */
  readonly 'estats-hist': Endpoints<EndpointHistogram>;
  /** `rocev2 estats dump`. */
  readonly 'estats-dump': Endpoints<EndpointDumps>;
  /** `rocev2 estats diagnose`. */
  readonly 'estats-diagnose': Endpoints<EndpointDiagnosis>;
  /** `rocev2 dashboard`. */
  readonly dashboard: DashboardResult;
  /** `rocev2 report`. */
  readonly report: ReportResult;
}

/** The types from which scripts/schemas.js makes `schemas/*.json`. */
export interface SchemaSources extends Results {
  /** The head of every document. */
  readonly head: DocumentHead;
  /** Lines of `rocev2 decode` before the last. */
  readonly 'decode-line': PacketLine | EventLine;
}
