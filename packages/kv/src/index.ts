/**
 * `@rocev2/kv`: a cache that readers read without its owner. A GET is one or two READs of the owner's memory, so it is
 * answered while the owner computes. See docs/kv.md.
 *
 * @module @rocev2/kv
 */

export { KvClient } from './client.js';
export type { Codec, CodecName } from './codec.js';
export type { StoreSizes } from './geometry-for.js';
export type { Key, Kv, KvEntry, KvEvent, ScanOptions, SetOptions } from './kv.js';
export { KvServer, type OpenKvOptions, openKv, type ServeKvOptions, type SnapshotOptions, serveKv } from './live.js';
export { type OpenKvShardsOptions, openKvShards, type ShardOwner } from './open-shards.js';
export { KvOwner } from './owner.js';
export type { LookupCounters } from './remote-table.js';
export type { ClientCounters } from './session.js';
export { KvShards } from './shards.js';
export type { Eviction, KvCounters } from './store.js';
