/** What the dashboard tells its page about a cluster of extents, as a manager knows it: a part of the messages about running programs (attached.ts). */

/** How a node of a cluster does: `suspect` is silent, and will be down if it stays so. */
export type AttachedNodeState = 'up' | 'read-only' | 'suspect' | 'down';

/** A cluster over one interval, as the manager that leads knows it. */
export interface ClusterReading {
  /** The nodes that are shown. */
  readonly nodes: ReadonlyArray<{
    readonly node: number;
    readonly state: AttachedNodeState;
    /** Of its records and fragments. */
    readonly usedBytes: number;
  }>;
  /** Nodes that report and are not late, all of them, those that take no new data included. */
  readonly up: number;
  /** Nodes that are silent. */
  readonly suspect: number;
  /** Nodes that have been silent for too long. */
  readonly down: number;
  /** Extents that owners append to. */
  readonly open: number;
  /** Extents that are sealed and on three nodes each. */
  readonly replicated: number;
  /** Extents that are sealed and in fragments. */
  readonly coded: number;
  /** Extents without all of their replicas or fragments. */
  readonly underReplicated: number;
  /** Extents that nobody can read. */
  readonly unavailable: number;
  /** Replicas and fragments being made of others, and extents being coded. */
  readonly underWay: number;
  /** Of all nodes. */
  readonly usedBytes: number;
  /** Of the nodes that are not down, as each one says. */
  readonly freeBytes: number;
  /** Extents sealed. */
  readonly sealsPerSecond: number;
  /** Replicas and fragments made anew. */
  readonly repairsPerSecond: number;
  /** Extents coded. */
  readonly codingsPerSecond: number;
  /** Since the manager began to lead. */
  readonly totals: {
    /** Extents sealed. */
    readonly seals: number;
    /** Replicas and fragments made anew. */
    readonly repairs: number;
    /** Extents coded. */
    readonly codings: number;
    /** Damaged records that nodes have found, and not mended so far. */
    readonly damaged: number;
  };
}

/** A node as it is now. */
export interface ClusterNodeDetail {
  /** Its number. */
  readonly node: number;
  /** `HOST:PORT`. */
  readonly address: string;
  /** Its fault domain. */
  readonly domain: string;
  /** How it does. */
  readonly state: AttachedNodeState;
  /** Why it takes no new data; null: it does. */
  readonly readOnly: string | null;
  /** Since it was heard last. */
  readonly silentMs: number;
  /** Replicas that it has. */
  readonly replicas: number;
  /** Fragments that it has. */
  readonly fragments: number;
  /** Of its records and fragments. */
  readonly usedBytes: number;
  /** Space left. */
  readonly freeBytes: number;
  /** Records that it has found damaged. */
  readonly damaged: number;
  /** Those of them that are intact again. */
  readonly repaired: number;
}

/** A stream as it is now. */
export interface ClusterStreamDetail {
  /** Its name. */
  readonly stream: string;
  /** Extents that it has. */
  readonly extents: number;
  /** Those of them that are coded. */
  readonly coded: number;
  /** Of records in those that are sealed. */
  readonly sealedBytes: number;
  /** Who appends to it; null: nobody. */
  readonly owner: string | null;
}

/** A manager as it is now, and of the one that leads the cluster. */
export interface ClusterDetail {
  /** Name of the cluster, if the manager knows it. */
  readonly cluster: string | null;
  /** Who leads, if the manager knows. */
  readonly leader: string | null;
  /** Why it leads and cannot tell how the cluster is. */
  readonly trouble: string | null;
  /** Those that are there, the one that leads first; none where the manager does not lead. */
  readonly managers: ReadonlyArray<{ readonly address: string; readonly leads: boolean; readonly since: string }>;
  /** Those in trouble, and then the others, as far as they are shown; by number. */
  readonly nodes: readonly ClusterNodeDetail[];
  /** All of them. */
  readonly nodeCount: number;
  /** The largest ones. */
  readonly streams: readonly ClusterStreamDetail[];
  /** All of them. */
  readonly streamCount: number;
}
