import type { RegionCopies } from '../../memory/mapped/copies.js';
import type { AllowedRate } from './allowed-rate.js';
import type { LatencySummary } from './histogram.js';
import type { OpLatency } from './op-latency.js';
import type { StageName } from './stages.js';
import type { ConnectionTotals } from './totals.js';

export interface GroupRow extends LatencySummary {
  readonly conn: string;
  readonly op: string;
  readonly status: string;
  readonly stage: StageName;
}

/**
 * The authenticated identity of the peer, the cipher, and the SPIs of both directions. Counters since the first key:
 * packets sealed and opened, dropped as replayed and as forged, and changes of keys. Queue pairs that share a
 * connection of the exchange share the keys.
 */
interface ProtectionRow {
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

/** One queue pair that is open, and what rate control allows it now. */
export interface QpRow extends AllowedRate {
  readonly conn: string;
  readonly qpn: number;
  readonly remote: { readonly address: string; readonly qpn: number } | null;
  /** Missing while packets are plain. */
  readonly protection?: ProtectionRow | undefined;
  /** Of its operations; missing where no memory of the peer can be mapped. */
  readonly copies?: RegionCopies | undefined;
  /** Seconds of the time covered in which the connection existed. */
  readonly observedSeconds: number;
  /** What it added up in the time covered, and in all. */
  readonly covered: ConnectionTotals;
  readonly total: ConnectionTotals;
}

/** A dump without what is in it: `GET /dumps.json` has that. */
interface DumpRow {
  readonly time: string;
  readonly reason: 'slow' | 'error' | 'asked';
  readonly conn: string;
  readonly op?: string | undefined;
  readonly status?: string | undefined;
  /** Posted to polled. */
  readonly wholeNs?: number | undefined;
}

/** What an endpoint answers. */
export interface EstatsSnapshot {
  /** Tells the kinds of documents apart. */
  readonly kind: 'endpoint';
  /** Version of this kind. */
  readonly version: 1;
  /** Process number. */
  readonly pid: number;
  /** The endpoint's IP address. */
  readonly address: string;
  /** For people: what carries the packets. */
  readonly port: string;
  /** Where the NIC runs: on the program's event loop, or in a separate thread. */
  readonly engine: 'inline' | 'worker';
  /** ISO 8601, of this document. */
  readonly time: string;
  /** ISO 8601, of the first window in the document. */
  readonly windowStart: string;
  /** Seconds of one window. */
  readonly windowSeconds: number;
  /** Seconds that this document covers. */
  readonly coveredSeconds: number;
  /** Seconds since the endpoint was opened. */
  readonly uptimeSeconds: number;
  /** One row a group and stage. */
  readonly groups: readonly GroupRow[];
  /** Posted to polled of all successful work by operation, all connections together. */
  readonly latency: readonly OpLatency[];
  /** The queue pairs that are open. */
  readonly qps: readonly QpRow[];
  /** Lateness of the program's event loop; `stalledShare` is the part of the time covered in which it was blocked. */
  readonly loopDelay: LatencySummary & { readonly stalledShare: number; readonly typicalStallNs: number };
  /** Counters of the NIC by name. */
  readonly device: { readonly counters: Readonly<Record<string, number>> };
  /** The dumps that are kept, oldest first. */
  readonly dumps: readonly DumpRow[];
  /** How full the bounded tables are, and how much they have left out. */
  readonly bounds: {
    readonly groups: number;
    readonly overflowedSamples: number;
    readonly windowsDroppedEarly: number;
    readonly dumps: number;
    readonly dumpsSuppressed: number;
  };
}
