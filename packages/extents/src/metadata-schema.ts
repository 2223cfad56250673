import { RpcError } from '@rocev2/rpc';
import type { CodeName } from './coding/erasure-code.js';
import type { Metadata, Transaction } from './metadata.js';

export interface StreamRecord {
  readonly epoch: number;
  /** Numbers in order. */
  readonly extents: readonly number[];
  /**
   * Where an owner serves it. Of another epoch than the stream's: that owner has gone. Missing, as with managers of
   * earlier versions: none has said so.
   */
  readonly served?: ServedPlace;
}

export interface ServedPlace {
  readonly epoch: number;
  readonly address: string;
}

export interface ExtentRecord {
  readonly epoch: number;
  /** Bytes, once sealed; then they never change. */
  readonly sealed?: number;
  readonly replicas: readonly number[];
  readonly coded?: CodedRecord;
  readonly of?: ExtentOrigin;
}

/** The stream that an extent was opened for, and its epoch then. */
export interface ExtentOrigin {
  readonly stream: string;
  readonly epoch: number;
}

/** An append is on all of them before it is acknowledged. */
export const REPLICAS = 3;

/** Unused node number: the fragment is lost. */
export const NOBODY = 0;

export interface CodedRecord {
  readonly code: CodeName;
  readonly fragments: ReadonlyArray<{ readonly node: number; readonly making: number }>;
}

export interface NodeRecord {
  readonly address: string;
  readonly domain: string;
  readonly lives: number;
  /** The last mark of its folder that it has reported; missing until then. */
  readonly mark?: string;
  /** Where its folder was when it joined, `HOST:PATH`; missing with nodes of earlier versions. */
  readonly folder?: string;
  /** Why the last folder or journal that it was started with was refused; missing if neither was. */
  readonly refused?: string;
  /** A copy of its folder that was refused elsewhere since it joined, which says nothing about the node itself. */
  readonly copy?: string;
}

export interface Versioned<T> {
  readonly key: string;
  readonly version: number;
  readonly value: T;
}

export type KnownExtent = Versioned<ExtentRecord> & { readonly extent: number };

const CLUSTER = 'cluster';
const NEXT_EXTENT = 'next-extent';
const NEXT_NODE = 'next-node';
const NEXT_MAKING = 'next-making';

export class MetadataSchema {
  readonly #metadata: Metadata;

  constructor(metadata: Metadata) {
    this.#metadata = metadata;
  }

  async stream(name: string): Promise<Versioned<StreamRecord>> {
    return this.#get(`stream/${name}`, `there is no stream '${name}'`);
  }

  /** Throws FENCED if another owner has opened the stream since. */
  async ownedStream(name: string, epoch: number): Promise<Versioned<StreamRecord>> {
    const record = await this.stream(name);
    if (record.value.epoch !== epoch)
      throw new RpcError(
        'FENCED',
        `another program has opened the stream '${name}' since (epoch ${record.value.epoch}, and not ${epoch})`,
      );
    return record;
  }

  async extent(extent: number): Promise<Versioned<ExtentRecord>> {
    return this.#get(extentKey(extent), `there is no extent ${extent}`);
  }

  async node(node: number): Promise<Versioned<NodeRecord> | undefined> {
    return this.#find(`node/${node}`);
  }

  async streams(): Promise<ReadonlyArray<Versioned<StreamRecord> & { readonly stream: string }>> {
    const streams = await this.#list<StreamRecord>('stream/');
    return streams.map((record) => ({ ...record, stream: record.key.slice('stream/'.length) }));
  }

  async extents(): Promise<readonly KnownExtent[]> {
    const extents = await this.#list<ExtentRecord>('extent/');
    return extents.map((record) => ({ ...record, extent: Number(record.key.slice('extent/'.length)) }));
  }

  async nodes(): Promise<ReadonlyArray<Versioned<NodeRecord> & { readonly node: number }>> {
    const nodes = await this.#list<NodeRecord>('node/');
    return nodes.map((record) => ({ ...record, node: Number(record.key.slice('node/'.length)) }));
  }

  async clusterName(): Promise<string | undefined> {
    return (await this.#find<string>(CLUSTER))?.value;
  }

  async cluster(newName: () => string): Promise<string> {
    for (;;) {
      const found = await this.#find<string>(CLUSTER);
      if (found !== undefined) return found.value;
      await this.commit([{ key: CLUSTER, version: 0, value: newName() }]);
    }
  }

  /** Takes the name of a cluster whose metadata is lost. False if this metadata has nodes or streams. */
  async acceptCluster(name: string): Promise<boolean> {
    const [found, nodes, streams] = await Promise.all([this.#find<string>(CLUSTER), this.nodes(), this.streams()]);
    if (found === undefined || nodes.length + streams.length > 0) return false;
    return this.commit([{ key: CLUSTER, version: found.version, value: name }]);
  }

  newExtent(): Promise<number> {
    return this.#newNumber(NEXT_EXTENT);
  }

  newNode(): Promise<number> {
    return this.#newNumber(NEXT_NODE);
  }

  newMaking(): Promise<number> {
    return this.#newNumber(NEXT_MAKING);
  }

  /** New numbers are larger than these. */
  async reserve({ extent, node, making }: Record<'extent' | 'node' | 'making', number>): Promise<void> {
    for (const [key, used] of [
      [NEXT_EXTENT, extent],
      [NEXT_NODE, node],
      [NEXT_MAKING, making],
    ] as const) {
      const last = await this.#find<number>(key);
      if ((last?.value ?? 1) <= used) await this.commit([{ key, version: last?.version ?? 0, value: used + 1 }]);
    }
  }

  async #newNumber(key: string): Promise<number> {
    for (;;) {
      const last = await this.#find<number>(key);
      const number = last?.value ?? 1;
      if (await this.commit([{ key, version: last?.version ?? 0, value: number + 1 }])) return number;
    }
  }

  async commit(changes: ReadonlyArray<{ key: string; version: number; value?: unknown }>): Promise<boolean> {
    const put = changes.filter(({ value }) => value !== undefined);
    const transaction: Transaction = {
      compare: changes.map(({ key, version }) => ({ key, version })),
      put: put.map(({ key, value }) => ({ key, value: JSON.stringify(value) })),
      remove: changes.filter(({ value }) => value === undefined).map(({ key }) => key),
    };
    return (await this.#metadata.commit(transaction)) > 0;
  }

  async #find<T>(key: string): Promise<Versioned<T> | undefined> {
    const entry = await this.#metadata.get(key);
    return entry && { key, version: entry.version, value: JSON.parse(entry.value) as T };
  }

  async #get<T>(key: string, missing: string): Promise<Versioned<T>> {
    const found = await this.#find<T>(key);
    if (found === undefined) throw new RpcError('MISSING', missing);
    return found;
  }

  async #list<T>(prefix: string): Promise<Versioned<T>[]> {
    const entries = await this.#metadata.list(prefix);
    return entries.map(({ key, version, value }) => ({ key, version, value: JSON.parse(value) as T }));
  }
}

export function extentKey(extent: number): string {
  return `extent/${String(extent).padStart(12, '0')}`;
}

export function servedAt({ epoch, served }: StreamRecord): string | undefined {
  return served?.epoch === epoch ? served.address : undefined;
}

export function ownerPlace(owner: string, record: StreamRecord): { owner: string; address?: string } {
  const address = servedAt(record);
  return { owner, ...(address !== undefined && { address }) };
}
