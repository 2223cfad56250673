/** The manager's records in its metadata: streams, extents and nodes, each with the version that a transaction compares. */

import { RpcError } from '@rocev2/rpc';
import type { CodeName } from './coding/erasure-code.js';
import type { Metadata, Transaction } from './metadata.js';

/** A stream: an ordered list of extents, of which only the last may be open. */
export interface StreamRecord {
  /** Of the owner: rises with each. */
  readonly epoch: number;
  /** Numbers in order. */
  readonly extents: readonly number[];
  /** Where an owner serves it. Of another epoch than the stream's: that owner has gone. Missing, as with managers of earlier versions: none has said so. */
  readonly served?: ServedPlace;
}

/** Where the owner of a stream serves what is in it. */
export interface ServedPlace {
  /** Epoch of that owner. */
  readonly epoch: number;
  /** `HOST:PORT`. */
  readonly address: string;
}

/** An extent: its epoch, its length once that is decided, and where it is. */
export interface ExtentRecord {
  /** Requests to replicas carry it; rises when the extent is fenced. */
  readonly epoch: number;
  /** Bytes, once sealed; then they never change. */
  readonly sealed?: number;
  /** Nodes that have all of it. */
  readonly replicas: readonly number[];
  /** Its fragments, once it is coded. */
  readonly coded?: CodedRecord;
}

/** Replicas of an extent. An append is on all of them before it is acknowledged. */
export const REPLICAS = 3;

/** Number of a node that nobody has: the fragment is lost. */
export const NOBODY = 0;

/** The fragments of an extent, by their numbers. */
export interface CodedRecord {
  /** What made its fragments. */
  readonly code: CodeName;
  /** Where each is, and which attempt has made it. */
  readonly fragments: ReadonlyArray<{ readonly node: number; readonly making: number }>;
}

/** A node that has joined. */
export interface NodeRecord {
  /** `HOST:PORT`. */
  readonly address: string;
  /** Nodes of one fault domain may fail together. */
  readonly domain: string;
  /** Starts of its disk that have been seen. */
  readonly lives: number;
}

/** A record and its version; version 0: there is none. */
export interface Versioned<T> {
  /** In the metadata. */
  readonly key: string;
  /** What a transaction compares. */
  readonly version: number;
  /** The record. */
  readonly value: T;
}

/** A record of an extent with its number. */
export type KnownExtent = Versioned<ExtentRecord> & { readonly extent: number };

const CLUSTER = 'cluster';
const NEXT_EXTENT = 'next-extent';
const NEXT_NODE = 'next-node';
const NEXT_MAKING = 'next-making';

/** The records of one cluster. */
export class MetadataSchema {
  readonly #metadata: Metadata;

  constructor(metadata: Metadata) {
    this.#metadata = metadata;
  }

  /** A stream. Throws MISSING. */
  async stream(name: string): Promise<Versioned<StreamRecord>> {
    return this.#get(`stream/${name}`, `there is no stream '${name}'`);
  }

  /** An extent. Throws MISSING. */
  async extent(extent: number): Promise<Versioned<ExtentRecord>> {
    return this.#get(extentKey(extent), `there is no extent ${extent}`);
  }

  /** A node. Undefined: it has never joined. */
  async node(node: number): Promise<Versioned<NodeRecord> | undefined> {
    return this.#find(`node/${node}`);
  }

  /** All streams, with their names. */
  async streams(): Promise<ReadonlyArray<Versioned<StreamRecord> & { readonly stream: string }>> {
    const streams = await this.#list<StreamRecord>('stream/');
    return streams.map((record) => ({ ...record, stream: record.key.slice('stream/'.length) }));
  }

  /** All extents, with their numbers. */
  async extents(): Promise<readonly KnownExtent[]> {
    const extents = await this.#list<ExtentRecord>('extent/');
    return extents.map((record) => ({ ...record, extent: Number(record.key.slice('extent/'.length)) }));
  }

  /** All nodes, with their numbers. */
  async nodes(): Promise<ReadonlyArray<Versioned<NodeRecord> & { readonly node: number }>> {
    const nodes = await this.#list<NodeRecord>('node/');
    return nodes.map((record) => ({ ...record, node: Number(record.key.slice('node/'.length)) }));
  }

  /** The name of the cluster. Undefined: there has been no manager. */
  async clusterName(): Promise<string | undefined> {
    return (await this.#find<string>(CLUSTER))?.value;
  }

  /** The name of the cluster. `newName`: what it is if there has been no manager before. */
  async cluster(newName: () => string): Promise<string> {
    for (;;) {
      const found = await this.#find<string>(CLUSTER);
      if (found !== undefined) return found.value;
      await this.commit([{ key: CLUSTER, version: 0, value: newName() }]);
    }
  }

  /** A number that no extent has had. */
  newExtent(): Promise<number> {
    return this.#newNumber(NEXT_EXTENT);
  }

  /** A number that no node has had. */
  newNode(): Promise<number> {
    return this.#newNumber(NEXT_NODE);
  }

  /** A number that no attempt to make fragments has had. */
  newMaking(): Promise<number> {
    return this.#newNumber(NEXT_MAKING);
  }

  async #newNumber(key: string): Promise<number> {
    for (;;) {
      const last = await this.#find<number>(key);
      const number = last?.value ?? 1;
      if (await this.commit([{ key, version: last?.version ?? 0, value: number + 1 }])) return number;
    }
  }

  /** Writes records that still have the versions here, and removes those without a value. False: another change came first, and nothing has been written. */
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

/** Key of an extent's record; sorted by number. */
export function extentKey(extent: number): string {
  return `extent/${String(extent).padStart(12, '0')}`;
}

/** Where the present owner of a stream serves it, as far as it has said so. */
export function servedAt({ epoch, served }: StreamRecord): string | undefined {
  return served?.epoch === epoch ? served.address : undefined;
}

/** The owner of a stream, and where it serves it. */
export function ownerPlace(owner: string, record: StreamRecord): { owner: string; address?: string } {
  const address = servedAt(record);
  return { owner, ...(address !== undefined && { address }) };
}
