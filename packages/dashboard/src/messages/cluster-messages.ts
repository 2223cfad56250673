export type AttachedNodeState = 'up' | 'read-only' | 'suspect' | 'down';

export interface ClusterReading {
  readonly nodes: ReadonlyArray<{
    readonly node: number;
    readonly state: AttachedNodeState;
    readonly usedBytes: number;
  }>;
  readonly up: number;
  readonly suspect: number;
  readonly down: number;
  readonly open: number;
  readonly replicated: number;
  readonly coded: number;
  readonly underReplicated: number;
  readonly unavailable: number;
  readonly underWay: number;
  readonly usedBytes: number;
  readonly freeBytes: number;
  readonly sealsPerSecond: number;
  readonly repairsPerSecond: number;
  readonly codingsPerSecond: number;
  readonly totals: {
    readonly seals: number;
    readonly repairs: number;
    readonly codings: number;
    readonly damaged: number;
  };
}

export interface ClusterNodeDetail {
  readonly node: number;
  readonly address: string;
  readonly domain: string;
  readonly state: AttachedNodeState;
  readonly readOnly: string | null;
  readonly silentMs: number;
  readonly replicas: number;
  readonly fragments: number;
  readonly usedBytes: number;
  readonly freeBytes: number;
  readonly damaged: number;
  readonly repaired: number;
}

export interface ClusterStreamDetail {
  readonly stream: string;
  readonly extents: number;
  readonly coded: number;
  readonly sealedBytes: number;
  readonly owner: string | null;
}

export interface ClusterDetail {
  readonly cluster: string | null;
  readonly leader: string | null;
  readonly trouble: string | null;
  readonly managers: ReadonlyArray<{ readonly address: string; readonly leads: boolean; readonly since: string }>;
  readonly nodes: readonly ClusterNodeDetail[];
  readonly nodeCount: number;
  readonly streams: readonly ClusterStreamDetail[];
  readonly streamCount: number;
}
