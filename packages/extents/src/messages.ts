import type { RpcError } from '@rocev2/rpc';
import type { CodeName } from './coding/erasure-code.js';
import type { FragmentId, FragmentShape } from './coding/layout.js';
import type { JournalUse } from './journal.js';
import type { MetadataVersion } from './metadata-history.js';
import type { ExtentOrigin } from './metadata-schema.js';
import type { ReplicaLength } from './replica.js';

export interface ReplicaReport {
  readonly extent: number;
  readonly sealed?: number;
  /** It was open when the node went down, and takes no more appends. */
  readonly isStopped?: true;
}

/** Why a node or a manager refuses. */
export const EXTENT_CODES = [
  'FENCED',
  'SEALED',
  'CONFLICT',
  'DAMAGED',
  'MISSING',
  'READ_ONLY',
  'UNREACHABLE',
  'NO_SPACE',
  'BUSY',
  'INVALID',
  'NOT_LEADER',
  'UNVERIFIED',
  'OUTDATED',
] as const;

/** One of {@link EXTENT_CODES}. */
export type ExtentCode = (typeof EXTENT_CODES)[number];

/** The code of a refusal; `UNREACHABLE` for every other error: the peer may or may not have done it. */
export function codeOf(error: unknown): ExtentCode {
  const code = (error as RpcError | undefined)?.remoteCode as ExtentCode;
  return EXTENT_CODES.includes(code) ? code : 'UNREACHABLE';
}

/** A node and its address. */
export interface NodePlace {
  /** Its number. */
  readonly node: number;
  /** `HOST:PORT`. */
  readonly address: string;
}

/** The location of a fragment. */
export interface FragmentPlace extends NodePlace {
  /** Which one of the code, from 0. */
  readonly fragment: number;
  /** Which attempt has made it. */
  readonly making: number;
}

/** The fragments of an extent that is coded. */
export interface CodedPlace {
  /** The code that made them. */
  readonly code: CodeName;
  /** Those on nodes that are up. */
  readonly fragments: readonly FragmentPlace[];
}

/** An extent as reported by the manager. */
export interface ExtentPlace {
  /** Its number. */
  readonly extent: number;
  /** What requests to its replicas must carry. */
  readonly epoch: number;
  /** Bytes of records, once sealed. */
  readonly sealed?: number;
  /** Nodes that have all of it; the first one is the primary of an open extent. None, if it is coded. */
  readonly replicas: readonly NodePlace[];
  /** Its fragments, if it is coded. */
  readonly coded?: CodedPlace;
}

/** What a node has, for the recovery of the metadata. */
export interface NodeInventory {
  readonly replicas: ReadonlyArray<ReplicaReport & { readonly epoch: number; readonly of?: ExtentOrigin }>;
  readonly fragments: ReadonlyArray<FragmentId & FragmentShape>;
}

/** Findings of `recoverMetadata`. */
export interface RecoveryReport {
  /** Extents of which a node has all records: a replica that is sealed, or fragments. */
  readonly certain: readonly number[];
  /** Extents that were open: their length is decided when they are sealed. */
  readonly open: readonly number[];
  /** Extents in the metadata that no answering node has: lost, on silent nodes, or deleted since. */
  readonly missing: readonly number[];
  /** Extents whose nodes do not report the stream: they are ignored, and their nodes delete them. */
  readonly unknown: readonly number[];
  /** Extents that were added to streams. */
  readonly streams: ReadonlyArray<{ readonly stream: string; readonly extents: readonly number[] }>;
  /** Nodes that did not answer: extents that only they have are not in the metadata. */
  readonly silent: readonly number[];
}

/** A stream that is back. */
export interface UndeleteReport {
  /** Its extents in order. */
  readonly extents: readonly number[];
  /** Nodes that did not answer: what they alone have is not in the stream. */
  readonly silent: readonly number[];
}

export interface NodeMethods {
  create: [{ extent: number; epoch: number; of?: ExtentOrigin }, object];
  /** `failed`: on which node it is not. */
  append: [
    { extent: number; epoch: number; offset: number; record: Uint8Array; secondaries: readonly NodePlace[] },
    { failed?: number; code?: string },
  ];
  fence: [{ extent: number; epoch: number }, ReplicaLength];
  seal: [{ extent: number; epoch: number; length: number }, { isSealed: boolean }];
  read: [
    { extent: number; offset: number; first: number; count: number },
    { data: Uint8Array; crcs: readonly number[] },
  ];
  /** `isFenced`: records count that are not known to be committed. */
  fetch: [{ extent: number; offset: number; bytesMax: number; isFenced?: boolean }, { records: Uint8Array }];
  /** Bytes of a sealed extent as they are on the disk, which may be damaged. */
  fetchPlain: [{ extent: number; offset: number; bytes: number }, { data: Uint8Array }];
  /** Answered when it is complete and durable. */
  copy: [{ extent: number; epoch: number; length: number; from: readonly NodePlace[]; of?: ExtentOrigin }, object];
  /** Answered when the replica, which is fenced with this epoch, has the length. */
  complete: [{ extent: number; epoch: number; length: number; from: readonly NodePlace[] }, object];
  repair: [{ extent: number; offset: number; from: readonly NodePlace[] }, { isRepaired: boolean }];
  remove: [{ extent: number }, object];
  /** Extents of a stream that the node has in quarantine. */
  deleted: [{ stream: string }, { extents: readonly number[] }];
  /** Takes extents out of quarantine. */
  undelete: [{ extents: readonly number[] }, object];
  /** Everything that the node has. */
  inventory: [object, NodeInventory];
  /** Answered when it is durable. Throws OUTDATED if the node has seen a later state. */
  noteVersion: [{ version: MetadataVersion }, object];
  /** Answered when all are durable, and have been read back. */
  encode: [{ extent: number; making: number; targets: readonly NodePlace[] } & FragmentShape, object];
  writeFragment: [FragmentId & FragmentShape & { first: number; data: Uint8Array; crcs: readonly number[] }, object];
  finishFragment: [FragmentId, object];
  readFragment: [FragmentId & { first: number; count: number }, { data: Uint8Array; crcs: readonly number[] }];
  /** Answered when it is durable, and has been read back. */
  rebuild: [FragmentId & FragmentShape & { fragments: readonly FragmentPlace[] }, object];
  mendFragment: [FragmentId, { mended: number }];
}

/** What a folder says of itself. */
export interface FolderMarks {
  /** Starts of the node so far. */
  readonly lives: number;
  /** Missing in a new folder. */
  readonly mark?: string;
  readonly before?: string;
}

export interface ManagerMethods {
  introduce: [object, NewNode];
  /**
   * `folder`: where the folder is, `HOST:PATH`. `seen`: the last state of the metadata that a manager has shown the
   * node. `trustFolder`: the operator says that the folder may be an older copy. Answers the last mark of the folder
   * that has been reported. Throws CONFLICT for a folder that is older than that, or of another cluster, OUTDATED if
   * the metadata does not have that state.
   */
  join: [
    NodePlace &
      FolderMarks & {
        cluster: string;
        domain: string;
        folder?: string;
        seen?: MetadataVersion;
        trustFolder?: boolean;
      },
    { version: MetadataVersion; mark?: string },
  ];
  /** The node does not start with the folder or journal that it was given, and says why, and what to do. */
  refuse: [{ node: number; cluster: string; folder?: string; reason: string }, object];
  /** Throws CONFLICT if the node has to join first, or if a copy of its folder has joined since. */
  report: [
    FolderMarks & {
      node: number;
      freeBytes: number;
      usedBytes: number;
      damaged: number;
      repaired: number;
      readOnly?: string;
      journal?: JournalUse;
      seen?: MetadataVersion;
      replicas: readonly ReplicaReport[];
      fragments: readonly FragmentId[];
    },
    {
      version: MetadataVersion;
      /** Extents that the metadata does not know, and replicas that are not complete. */
      remove: readonly number[];
      /** Extents that are whole without this replica. */
      spare: readonly number[];
      removeFragments: readonly FragmentId[];
    },
  ];
  createStream: [{ stream: string }, object];
  deleteStream: [{ stream: string }, object];
  /** What the last owner had open is sealed. Throws BUSY while another one has a lease, unless `takeOver`. */
  openStream: [
    { stream: string; owner: string; leaseMs: number; takeOver: boolean },
    { epoch: number; extents: readonly ExtentPlace[]; extentBytes: number },
  ];
  /**
   * `owner`: gets the lease again if it has ended and nobody else has opened the stream since. `address`: where it
   * serves what is in the stream, `HOST:PORT`. Throws FENCED.
   */
  renew: [{ stream: string; epoch: number; leaseMs: number; owner?: string; address?: string }, object];
  /** What it had open is sealed, so that all of it can be read. */
  release: [{ stream: string; epoch: number }, object];
  /** `acked`: how many bytes of it the owner knows to be on all replicas. */
  advance: [
    { stream: string; epoch: number; extent?: number; acked: number; suspects: readonly number[] },
    ExtentPlace,
  ];
  adopt: [{ stream: string; epoch: number; extents: readonly number[] }, object];
  drop: [{ stream: string; epoch: number; extents: readonly number[] }, object];
  owner: [{ stream: string }, { owner?: string; address?: string }];
  /** `shared`: those that other streams also have. */
  locate: [{ stream: string }, { extents: readonly ExtentPlace[]; shared: readonly number[] }];
  /** Its owner continues in another extent. */
  cut: [{ stream: string }, { extents: readonly ExtentPlace[] }];
  locateExtent: [{ extent: number }, ExtentPlace];
  /** Rebuilds the metadata from the nodes. */
  recover: [object, RecoveryReport];
  /** Undoes the deletion of a stream. Throws CONFLICT if it is there, MISSING if no node has an extent of it. */
  undelete: [{ stream: string }, UndeleteReport];
  /** Seals extents that wait for a decision, all if none is named, with the replicas that answer. */
  accept: [{ extents: readonly number[] }, { sealed: readonly number[] }];
  status: [object, ClusterStatus];
}

export interface NewNode {
  readonly node: number;
  readonly cluster: string;
}

/** A manager and its role. */
export interface ManagerPlace {
  /** `HOST:PORT`. */
  readonly address: string;
  /** Whether it is the leader; the others are candidates. */
  readonly leads: boolean;
  /** When it became the leader or a candidate: ISO 8601, UTC. */
  readonly since: string;
}

/** State of the metadata. */
export interface MetadataState {
  /** `unverified`: too few nodes have confirmed it. `outdated`: a node has seen a later state. */
  readonly state: 'current' | 'unverified' | 'outdated';
  /** Why requests are refused, and what to do; missing if they are not. */
  readonly reason?: string;
}

/** The cluster as the manager knows it. */
export interface ClusterStatus {
  /** Its name: 32 hexadecimal digits, made with its first manager. */
  readonly cluster: string;
  /** Whether the metadata is the latest. Until that is known, all other requests are refused. */
  readonly metadata: MetadataState;
  /** Running managers, the leader first. */
  readonly managers: readonly ManagerPlace[];
  /** Nodes that have ever joined, by number. */
  readonly nodes: ReadonlyArray<{
    /** Its number. */
    readonly node: number;
    /** `HOST:PORT`. */
    readonly address: string;
    /** Its fault domain. */
    readonly domain: string;
    /** Whether it reports, and takes data. */
    readonly state: 'up' | 'down' | 'read-only';
    /** Since its last report, milliseconds; until it reports to this manager, since the manager knows of it. */
    readonly silentMs: number;
    /** Replicas that it has. */
    readonly replicas: number;
    /** Fragments that it has. */
    readonly fragments: number;
    /** Bytes of records and fragments that it has. */
    readonly usedBytes: number;
    /** Space left, bytes. */
    readonly freeBytes: number;
    /** Damaged records that it has found since its start. */
    readonly damaged: number;
    /** Those of them that were repaired. */
    readonly repaired: number;
    /** Why it takes no new data; missing if it does. */
    readonly readOnly?: string;
    /** How full its journal is; missing if it has none. */
    readonly journal?: JournalUse;
    /** Replicas that were open when the node went down, and have not been compared with others; missing if none. */
    readonly unverified?: number;
    /** Why its folder or journal was refused, and what to do; missing if neither was. */
    readonly refused?: string;
    /** Which copy of its folder was started elsewhere and refused; missing if none was. */
    readonly copy?: string;
  }>;
  /** Streams by name. */
  readonly streams: ReadonlyArray<{
    /** Its name. */
    readonly stream: string;
    /** Extents that it has. */
    readonly extents: number;
    /** Those of them that are coded. */
    readonly coded: number;
    /** Bytes of records in those that are sealed. */
    readonly sealedBytes: number;
    /** The owner, which appends to it; missing if there is none. */
    readonly owner?: string;
    /** Where the owner serves its content, `HOST:PORT`; missing if it is not announced. */
    readonly address?: string;
  }>;
  /**
   * Nodes that have to take data so that all extents are, or can be made, as they should be: three, or as many as the
   * code in use has fragments.
   */
  readonly nodesNeeded: number;
  /** Extents by state. */
  readonly extents: {
    /** Those that owners append to. */
    readonly open: number;
    /** Those that never change again. */
    readonly sealed: number;
    /** Those of them that are in fragments. */
    readonly coded: number;
    /** Those with fewer than three replicas, or not all fragments, on nodes that are up. */
    readonly underReplicated: number;
    /** Those of them without any replica, or with too few fragments. */
    readonly unavailable: number;
    /** Replicas and fragments being made of others. */
    readonly copying: number;
    /** Extents being coded. */
    readonly coding: number;
  };
  /** Extents that cannot be sealed until nodes return or the operator decides. */
  readonly waiting: ReadonlyArray<{
    /** Its number. */
    readonly extent: number;
    /** Why its length is not certain, and what to do. */
    readonly reason: string;
  }>;
  /** Since the start of the manager. */
  readonly counters: ManagerCounters;
}

/** Counters of a manager. */
export interface ManagerCounters {
  /** Extents sealed. */
  seals: number;
  /** Replicas rebuilt. */
  copies: number;
  /** Extents coded. */
  codings: number;
  /** Fragments rebuilt. */
  rebuilds: number;
  /** Extents deleted. */
  deleted: number;
  /** Folders and journals refused as older copies, or as those of another node. */
  refusedDisks: number;
}

/** Rejects with an `RpcError` of the node, or with any other error if there is no answer in time. */
export interface Nodes {
  call<M extends keyof NodeMethods>(
    place: NodePlace,
    method: M,
    request: NodeMethods[M][0],
    timeoutMs: number,
  ): Promise<NodeMethods[M][1]>;
}

export interface Manager {
  call<M extends keyof ManagerMethods>(
    method: M,
    request: ManagerMethods[M][0],
    timeoutMs: number,
  ): Promise<ManagerMethods[M][1]>;
}
