/** Internals of disk that the packages of this repository use. No part of the public API: it changes without notice. */

export {
  BLOCK_ERRNOS,
  type BlockDevice,
  BlockDeviceError,
  type BlockErrno,
  type BlockExtent,
  checkRange,
  EXTENTS_MAX,
  isWholeBlocks,
  NotOwnerError,
  type WriteOptions,
  type WriteZeroesOptions,
} from '../storage-rpc/disk/block-device.js';
export { checkDiskName, type DiskIdentity, uuidBytes, uuidText } from '../storage-rpc/disk/disk-identity.js';
export { FileDevice } from '../storage-rpc/disk/file-device.js';
export { syncFolder } from '../storage-rpc/disk/file-io.js';
export { GroupCommit } from '../storage-rpc/disk/group-commit.js';
export { MemoryDevice } from '../storage-rpc/disk/memory-device.js';
export { PROVISIONS, type Provision } from '../storage-rpc/disk/open-files.js';
export { RangeLock } from '../storage-rpc/disk/range-lock.js';
export { Scrubber } from '../storage-rpc/disk/scrubber.js';
export { WatchedDisk } from '../storage-rpc/disk/watched-disk.js';
export type { DiskLimit } from '../storage-rpc/fair/rate-limit.js';
export { openBackend } from '../storage-rpc/open-backend.js';
