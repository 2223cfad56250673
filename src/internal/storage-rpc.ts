/**
 * Internals of storage-rpc that the packages of this repository use. No part of the public API: it changes without
 * notice.
 */

export { serveCompletions } from '../storage-rpc/link/completions.js';
export { ConnectionWatch } from '../storage-rpc/link/connection-watch.js';
export { ServerSends } from '../storage-rpc/link/server-sends.js';
export { type FlowOptions, TRAFFIC_CLASSES, type TrafficClass } from '../storage-rpc/live/flow-options.js';
export type { FindServer, ServerAddress } from '../storage-rpc/live/server-resolver.js';
export { SocketStream } from '../storage-rpc/live/socket-stream.js';
export { StorageClient, type StorageClientReport } from '../storage-rpc/live/storage-client.js';
export { StorageServer } from '../storage-rpc/live/storage-server.js';
export { LEASE_NS_MIN, type StorageServerOptions } from '../storage-rpc/live/storage-server-options.js';
export { withoutTickets } from '../storage-rpc/live/tls-tickets.js';
export { type BufferLease, BufferPool } from '../storage-rpc/pool/buffer-pool.js';
export { FairPool } from '../storage-rpc/pool/fair-pool.js';
export { type HostEvent, noticeOf } from '../storage-rpc/session/host-event.js';
export { HostOutage } from '../storage-rpc/session/host-outage.js';
export type { DataBuffer } from '../storage-rpc/sk/channel.js';
export type { DiskAccess } from '../storage-rpc/sk/disk-lease.js';
export { describeDisk } from '../storage-rpc/sk/expected-disk.js';
export { MappableSlab, Mapping } from '../storage-rpc/sk/mappable-slab.js';
export type { NamedDisk } from '../storage-rpc/sk/served-disk.js';
export type { SkServerCounters } from '../storage-rpc/sk/server-counters.js';
export type { ByteStream } from '../storage-rpc/stream/byte-stream.js';
