/**
 * `rocev2/storage`: disks over RDMA with failover to TCP, and the byte stream between storage nodes.
 *
 * @module rocev2/storage
 */

export type { HostTransport, PathState, RdmaFallbackOptions } from '../cm/rdma-fallback.js';
export type { HostPort } from '../core/host-port.js';
export type { BlockDevice, BlockExtent, WriteOptions, WriteZeroesOptions } from './disk/block-device.js';
export { BLOCK_ERRNOS, BlockDeviceError, type BlockErrno, NotOwnerError } from './disk/block-device.js';
export type { DiskIdentity } from './disk/disk-identity.js';
export { FileDevice, type FileDeviceOptions } from './disk/file-device.js';
export { MemoryDevice } from './disk/memory-device.js';
export type { OpenFilesOptions, Provision } from './disk/open-files.js';
export { type ScrubbedDisk, Scrubber, type ScrubberOptions } from './disk/scrubber.js';
export type { DiskLimit } from './fair/rate-limit.js';
export { type FlowOptions, TRAFFIC_CLASSES, type TrafficClass } from './live/flow-options.js';
export type { FindServer, ServerAddress } from './live/server-resolver.js';
export { StorageClient, type StorageClientOptions, type StorageClientReport } from './live/storage-client.js';
export { StorageServer, type StorageServerDisk } from './live/storage-server.js';
export type { StorageServerOptions } from './live/storage-server-options.js';
export { SuDuplex } from './live/su-duplex.js';
export { SuEndpoint, type SuEndpointOptions } from './live/su-endpoint.js';
export { SuStreamClient, type SuStreamClientOptions } from './live/su-stream-client.js';
export { SuStreamServer, type SuStreamServerOptions } from './live/su-stream-server.js';
export type { SocketAddress } from './nbd/listen-address.js';
export { NbdDevice } from './nbd/nbd-device.js';
export { NbdServer, type NbdServerOptions } from './nbd/server.js';
export type { NbdCounters } from './nbd/server-connection.js';
export type { NbdTlsOptions } from './nbd/tls/server-tls.js';
export { type FileBackendOptions, openBackend } from './open-backend.js';
export type { BufferLease, BufferPool, Slab } from './pool/buffer-pool.js';
export type { HostEvent } from './session/host-event.js';
export type { DiskAccess, LeaseHolder } from './sk/disk-lease.js';
export { DiskInUse } from './sk/lease-request.js';
export type { RemoteDisk } from './sk/remote-disk.js';
export type { NamedDisk } from './sk/served-disk.js';
export type { SkServerCounters } from './sk/server-counters.js';
export type { SuConnection } from './su/su-connection.js';
export type { SuOptions, SuPools } from './su/su-parts.js';
export type { SuChunk } from './su/su-receiver.js';
export type { StreamTerms, SuStream } from './su-stream/su-stream.js';
