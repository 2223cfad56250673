/**
 * `@rocev2/extents`: streams of records that survive nodes. A record is on three nodes before its append is
 * acknowledged, and copied again when one of them is lost. See docs/extents.md.
 *
 * @module @rocev2/extents
 */

export { CODE_NAMES, type CodeName } from './coding/erasure-code.js';
export type { FragmentId, FragmentShape } from './coding/layout.js';
export { type DiskPart, diskOf } from './disk/disk-parts.js';
export type { DiskOwner, ListedStreamDisk } from './disk/disks.js';
export type { DiskMetadata } from './disk/map-records.js';
export { StreamDisk, type StreamDiskCounters } from './disk/stream-disk.js';
export type { NodeCounters } from './extent-node.js';
export type { ReaderCounters } from './extent-reader.js';
export type { JournalUse } from './journal.js';
export {
  type CreateDiskOptions,
  ExtentsClient,
  type OpenDiskOptions,
  type OpenExtentsOptions,
  type OpenStreamOptions,
  openExtents,
  type ReadRecord,
  type ReadStreamOptions,
} from './live/client.js';
export type { EtcdAccess } from './live/etcd-access.js';
export { ManagerServer, type ServeManagerOptions, serveManager } from './live/manager-server.js';
export { NodeServer, type ServeNodeOptions, serveNode } from './live/node-server.js';
export { EXTENT_TRANSPORTS, type ExtentTransport } from './live/peer-connector.js';
export {
  type ClusterStatus,
  type CodedPlace,
  EXTENT_CODES,
  type ExtentCode,
  type ExtentPlace,
  type FragmentPlace,
  type ManagerCounters,
  type ManagerPlace,
  type MetadataState,
  type NodePlace,
  type RecoveryReport,
  type UndeleteReport,
} from './messages.js';
export { type Location, StreamWriter, type WriterCounters } from './stream-writer.js';
