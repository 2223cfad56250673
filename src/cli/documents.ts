/**
 * The documents of `--json`: by the name of its schema, what a command adds to the head. `npm run schemas` makes `schemas/*.json` of these
 * types and their comments.
 */

import type { CaptureDamage } from '../capture/capture-reader.js';
import type { DecodedPacket } from '../capture/decoded-packet.js';
import type { FlowEvent, FlowSummary } from '../capture/flow-tracker.js';
import type { TraceRecord } from '../capture/trace-reader.js';
import type { LiveSwitchPortCounters } from '../driver/live-switch.js';
import type { Diagnosis } from '../estats/diagnosis.js';
import type { Dump } from '../estats/dump-log.js';
import type { EstatsSnapshot } from '../estats/endpoint-document.js';
import type { HistogramDocument } from '../estats/http-handler.js';
import type { ScenarioResult } from '../sim/scenario/result.js';
import type { ScenarioFile } from '../sim/scenario/schema.js';
import type { StorageClientReport } from '../storage-rpc/live/storage-client.js';
import type { NbdCounters } from '../storage-rpc/nbd/server-connection.js';
import type { SkServerCounters } from '../storage-rpc/sk/server-session.js';
import type { BufferPools } from '../switch/buffer-policy.js';
import type { SwitchPortSnapshot } from '../switch/switch-snapshot.js';
import type { VerifiedOperations } from './demo/verified-operations.js';
import type { BenchRow } from './disk/bench-run.js';
import type { DocumentHead } from './document-head.js';
import type { FluidResult } from './fluid-report.js';
import type { Comparison, LivelockRun } from './livelock/comparison.js';
import type { SweepResult } from './sim/sweep.js';
import type { TransferResult } from './transfer/result.js';
import type { WindowResult } from './window/experiment.js';

/** The fields of `rping --json`, and with `transport` those of `pingpong --json`. */
export interface PingResult {
  /** This side. */
  readonly role: 'client' | 'server';
  /** IP address of the other side. */
  readonly peer: string;
  /** Pings, or messages each way. */
  readonly iterations: number;
  /** Bytes of a ping or message. */
  readonly sizeBytes: number;
  /** From the first to the last. */
  readonly seconds: number;
  /** The contents were checked and right. False also when nothing was checked. */
  readonly verified: boolean;
}

/** The fields of `pingpong --json`. */
export interface PingpongResult extends PingResult {
  /** Of the queue pair. */
  readonly transport: 'rc' | 'uc' | 'ud';
}

/** The fields of `srq-pingpong --json`. */
export interface SrqPingpongResult extends PingResult {
  /** That share the receives. */
  readonly queuePairs: number;
}

/** The fields of `ucmatose --json`. */
export interface UcmatoseResult {
  /** This side. */
  readonly role: 'client' | 'server';
  /** IP address of the other side. */
  readonly peer: string;
  /** Made at once. */
  readonly connections: number;
  /** Messages each way on each connection. */
  readonly iterations: number;
  /** Bytes of a message. */
  readonly sizeBytes: number;
  /** From the first message to the end of the last connection. */
  readonly seconds: number;
}

/** The fields of `cmtime --json`. */
export interface CmtimeResult {
  /** This side. */
  readonly role: 'client' | 'server';
  /** IP address of the other side. */
  readonly peer: string;
  /** Made at once. */
  readonly connections: number;
  /** In their order; empty on the server, which does not measure. */
  readonly steps: readonly CmtimeStep[];
}

/** One step that all connections take at once. */
export interface CmtimeStep {
  /** What is done: `create qp`, `connect`, `disconnect`, `destroy`. */
  readonly name: string;
  /** From the beginning of the step to the end of the last connection's, in nanoseconds. */
  readonly totalNs: number;
  /** The same for the first one that was done. */
  readonly minNs: number;
  /** The same for the last one that was done. */
  readonly maxNs: number;
}

/** The fields of `switch --json`. */
export interface SwitchResult {
  /** How long the switch ran. */
  readonly seconds: number;
  /** In the order of the command line. */
  readonly ports: readonly SwitchPortResult[];
  /** The shared buffer; missing without one. */
  readonly pools?: BufferPools | undefined;
  /** Fault rules, and how often each struck. */
  readonly rules: readonly RuleHits[];
}

/** One port of a switch. */
export interface SwitchPortResult extends SwitchPortSnapshot {
  /** Name of the port. */
  readonly name: string;
  /** `HOST:PORT` of its socket. */
  readonly local: string;
  /** Totals; docs/switch.md has their meaning. */
  readonly counters: LiveSwitchPortCounters;
}

/** A fault rule. */
export interface RuleHits {
  /** As written. */
  readonly rule: string;
  /** How often it struck. */
  readonly hits: number;
}

/** The fields of `livelock --json`. */
export interface LivelockResult {
  /** In the order in which they were made. */
  readonly runs: readonly LivelockRun[];
  /** Packets per second of the lossless references. */
  readonly references: Comparison['references'];
}

/** The fields of `demo --json`. */
export interface DemoResult {
  /** Every byte was right, and go-back-0 alone delivered nothing. */
  readonly verified: boolean;
  /** The first part. */
  readonly operations: VerifiedOperations;
  /** The second part. */
  readonly livelock: Comparison;
}

/** The fields of `sim list --json`. */
export interface ScenarioList {
  /** Scenario files, as docs/lab.md describes them. */
  readonly scenarios: readonly ScenarioFile[];
}

/** The fields of `sim sweep --json`. */
export interface SweepResults {
  /** In the order of the points. */
  readonly runs: readonly SweepResult[];
}

/** The fields of `disk serve --json`. */
export interface DiskServeResult extends SkServerCounters {
  /** TCP port. */
  readonly port: number;
  /** Size of the disk. */
  readonly sizeBytes: number;
  /** How long the server ran. */
  readonly seconds: number;
}

/** The fields of `disk nbd --json`. */
export interface DiskNbdResult extends NbdCounters {
  /** Where clients find the disk. */
  readonly uri: string;
  /** Size of the disk. */
  readonly sizeBytes: number;
  /** How long the server ran. */
  readonly seconds: number;
  /** The connection to the storage server; missing for a disk of its own. */
  readonly storage?: StorageClientReport;
}

/** The fields of `disk bench --json`. */
export interface DiskBenchResult {
  /** A row for each disk, operation, block size and depth. */
  readonly rows: readonly BenchRow[];
}

/** Which program a part of a document is about. */
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
  /** Oldest first. */
  readonly dumps: readonly Dump[];
}

/** What `estats diagnose --json` prints for one process. */
export interface EndpointDiagnosis extends EndpointName {
  /** One for each connection and operation. */
  readonly connections: readonly Diagnosis[];
}

/** The fields of `estats top|hist|dump|diagnose --json`. */
export interface Endpoints<T> {
  /** One for each endpoint that answered. */
  readonly endpoints: readonly T[];
}

/** The fields of `dashboard --json`, printed when the page can be opened. */
export interface DashboardResult {
  /** Open it in a browser. */
  readonly url: string;
}

/** The fields of `report --json`. */
export interface ReportResult {
  /** The file written. */
  readonly page: string;
  /** What the page shows. */
  readonly sections: ReadonlyArray<{
    /** Name of the document. */
    readonly file: string;
    /** Heading of its section. */
    readonly title: string;
  }>;
}

/** The last line of `decode --json`; it alone has the head. */
export interface DecodeSummary {
  /** Which line. */
  readonly type: 'summary';
  /** Capture: RoCEv2 packets printed or left out by --flow. */
  readonly packets?: number;
  /** Capture: other packets. */
  readonly otherPackets?: number;
  /** Capture: one for each direction to a queue pair. */
  readonly flows?: readonly FlowSummary[];
  /** Capture: where the file cannot be read on; missing for a whole file. */
  readonly damage?: CaptureDamage;
  /** Trace: how often each event happened, by name. */
  readonly events?: Readonly<Record<string, number>>;
}

/** A line of `decode --json` for a packet of a capture. 64-bit values are decimal strings. */
export interface PacketLine extends DecodedPacket {
  /** Which line. */
  readonly type: 'packet';
  /** Comment of the packet in the file. */
  readonly comment?: string;
  /** What is remarkable about the packet. */
  readonly events: readonly FlowEvent[];
}

/** A line of `decode --json` for an event of a trace. */
export interface EventLine extends TraceRecord {
  /** Which line. */
  readonly type: 'event';
}

/** The fields of `bw --json` and `lat --json`, the same on both sides. The client measures; a server of ours has the figures from it. */
export interface TransferDocument extends TransferResult {
  /** This side. */
  readonly role: 'client' | 'server';
  /** Fields beside this one that say nothing, because perftest does not tell this side: they are null or false. Empty between two of ours. */
  readonly unknown: ReadonlyArray<keyof TransferResult>;
  /** With --all: the result of each size; the fields beside are those of the last one. */
  readonly sizes?: readonly TransferResult[];
  /** With --perftest: why the test did not come to its end; missing when it did. */
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
  /** `rocev2 cmtime`. */
  readonly cmtime: CmtimeResult;
  /** `rocev2 decode`, its last line. */
  readonly decode: DecodeSummary;
  /** `rocev2 demo`. */
  readonly demo: DemoResult;
  /** `rocev2 livelock`. */
  readonly livelock: LivelockResult;
  /** `rocev2 switch`. */
  readonly switch: SwitchResult;
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
  /** `rocev2 disk serve`. */
  readonly 'disk-serve': DiskServeResult;
  /** `rocev2 disk nbd`. */
  readonly 'disk-nbd': DiskNbdResult;
  /** `rocev2 disk bench`. */
  readonly 'disk-bench': DiskBenchResult;
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

/** What scripts/schemas.js makes `schemas/*.json` of. */
export interface SchemaSources extends Results {
  /** Begins every document. */
  readonly head: DocumentHead;
  /** Lines of `rocev2 decode` before the last. */
  readonly 'decode-line': PacketLine | EventLine;
}
