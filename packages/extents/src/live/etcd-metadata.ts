/**
 * Metadata in etcd: versions are `mod_revision`, times to live are leases of one key each in whole seconds. A commit
 * that rejects may have happened, or happen later; `LeaderMetadata` finds out.
 */

import { type Clock, RoceError } from 'rocev2/internal/core';
import type { Metadata, MetadataEntry, Transaction } from '../metadata.js';
import type { EtcdAccess } from './etcd-access.js';
import { EtcdGateway } from './etcd-gateway.js';

const PREFIX = 'rocev2/extents/';
const PAGE = 1000;
const TIMEOUT_MS = 2_000;
const MS_PER_S = 1000;

interface KeyValue {
  readonly key: string;
  readonly value?: string;
  readonly mod_revision: string;
  readonly lease?: string;
}

interface RangeAnswer {
  readonly header: { readonly revision: string };
  readonly kvs?: readonly KeyValue[];
  readonly more?: boolean;
}

interface WatchAnswer {
  readonly result?: { readonly events?: ReadonlyArray<{ readonly kv: { readonly key: string } }> };
}

export interface EtcdOptions {
  readonly endpoints: readonly string[];
  readonly prefix?: string;
  readonly timeoutMs?: number;
  readonly access?: EtcdAccess;
}

export class EtcdMetadata implements Metadata {
  readonly #gateway: EtcdGateway;
  readonly #prefix: string;

  constructor(clock: Clock, { endpoints, prefix = PREFIX, timeoutMs = TIMEOUT_MS, access }: EtcdOptions) {
    this.#gateway = new EtcdGateway(endpoints, clock, timeoutMs, access);
    this.#prefix = prefix;
  }

  async get(key: string): Promise<MetadataEntry | undefined> {
    const found = await this.#find(key);
    return found && this.#entryOf(found);
  }

  /** Pages are of one revision, so that all entries are of one moment. */
  async list(prefix: string): Promise<readonly MetadataEntry[]> {
    const entries: MetadataEntry[] = [];
    const range_end = this.#encode(prefix, true);
    let key = this.#encode(prefix);
    let revision = '0';
    for (;;) {
      const answer = await this.#range({ key, range_end, limit: PAGE, revision });
      const kvs = answer.kvs ?? [];
      entries.push(...kvs.map((kv) => this.#entryOf(kv)));
      if (answer.more !== true) return entries;
      revision = revision === '0' ? answer.header.revision : revision;
      key = Buffer.concat([Buffer.from(kvs.at(-1)!.key, 'base64'), Buffer.of(0)]).toString('base64');
    }
  }

  async commit({ compare, put = [], remove = [] }: Transaction): Promise<number> {
    const leases = await Promise.all(put.map(async ({ ttlMs }) => (ttlMs === undefined ? '0' : this.#grant(ttlMs))));
    const written = new Set(put.map(({ key }) => key));
    const puts = put.map(({ key, value }, k) => ({
      request_put: { key: this.#encode(key), value: Buffer.from(value).toString('base64'), lease: leases[k] },
    }));
    const removes = remove.filter((key) => !written.has(key));
    const answer = await this.#gateway.askOnce<{ header: { revision: string }; succeeded?: boolean }>('/v3/kv/txn', {
      compare: compare.map(({ key, version }) => ({
        key: this.#encode(key),
        target: 'MOD',
        result: 'EQUAL',
        mod_revision: String(version),
      })),
      success: [...puts, ...removes.map((key) => ({ request_delete_range: { key: this.#encode(key) } }))],
    });
    if (answer.succeeded === true) return Number(answer.header.revision);
    for (const ID of leases) if (ID !== '0') void this.#gateway.ask('/v3/lease/revoke', { ID }).catch(() => {});
    return 0;
  }

  async renew(key: string, version: number, ttlMs: number): Promise<boolean> {
    const found = await this.#find(key);
    if (found === undefined || Number(found.mod_revision) !== version || found.lease === undefined) return false;
    const { result } = await this.#gateway.ask<{ result?: { TTL?: string } }>('/v3/lease/keepalive', {
      ID: found.lease,
    });
    const seconds = Number(result?.TTL ?? 0);
    if (seconds === 0) return false;
    if (seconds * MS_PER_S < ttlMs) {
      const hint = 'write the key again with that time';
      throw new RoceError(
        'ERR_ROCE_OUT_OF_RANGE',
        `the lease of ${key} is of ${seconds} s, and not of ${ttlMs} ms`,
        hint,
      );
    }
    // The lease lives on; so does the key, unless it was written or removed since.
    return Number((await this.#find(key))?.mod_revision ?? 0) === version;
  }

  watch(prefix: string, onChange: (key: string) => void): () => void {
    const range = { key: this.#encode(prefix), range_end: this.#encode(prefix, true) };
    const onEvent = ({ result }: WatchAnswer) => {
      for (const { kv } of result?.events ?? []) onChange(this.#decode(kv.key));
    };
    return this.#gateway.watch<WatchAnswer>({ create_request: range }, onEvent, () => onChange(prefix));
  }

  async close(): Promise<void> {
    this.#gateway.close();
  }

  async #grant(ttlMs: number): Promise<string> {
    const TTL = String(Math.ceil(ttlMs / MS_PER_S));
    return (await this.#gateway.ask<{ ID: string }>('/v3/lease/grant', { TTL })).ID;
  }

  async #find(key: string): Promise<KeyValue | undefined> {
    return (await this.#range({ key: this.#encode(key) })).kvs?.[0];
  }

  /** Ranges are linearizable unless `serializable` is set. */
  #range(request: object): Promise<RangeAnswer> {
    return this.#gateway.ask<RangeAnswer>('/v3/kv/range', request);
  }

  /** The key as etcd has it; `isEnd`: the first key that does not begin so. */
  #encode(key: string, isEnd = false): string {
    const bytes = Buffer.from(this.#prefix + key);
    if (isEnd) bytes[bytes.length - 1]++; // Our keys are ASCII.
    return bytes.toString('base64');
  }

  #decode(key: string): string {
    return Buffer.from(key, 'base64').toString().slice(this.#prefix.length);
  }

  #entryOf({ key, value = '', mod_revision }: KeyValue): MetadataEntry {
    return {
      key: this.#decode(key),
      value: Buffer.from(value, 'base64').toString(),
      version: Number(mod_revision),
    };
  }
}
