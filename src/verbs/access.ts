import {
  ACCESS_FLUSH_GLOBAL,
  ACCESS_FLUSH_PERSISTENT,
  ACCESS_LOCAL_WRITE,
  ACCESS_MW_BIND,
  ACCESS_REMOTE_ATOMIC,
  ACCESS_REMOTE_READ,
  ACCESS_REMOTE_WRITE,
  ACCESS_ZERO_BASED,
} from '../memory/ring/enums.js';

/** `ibv_access_flags`: combine with `|`. Local read is always allowed. */
export const Access = {
  /** The NIC may write for its own side: receives, data of READs, results of atomics. */
  LOCAL_WRITE: ACCESS_LOCAL_WRITE,
  /** The peer may write. Needs LOCAL_WRITE. */
  REMOTE_WRITE: ACCESS_REMOTE_WRITE,
  /** The peer may read. */
  REMOTE_READ: ACCESS_REMOTE_READ,
  /** The peer may do atomic operations. Needs LOCAL_WRITE. */
  REMOTE_ATOMIC: ACCESS_REMOTE_ATOMIC,
  /** Memory windows may be bound to the region. */
  MW_BIND: ACCESS_MW_BIND,
  /** Addresses count from 0 instead of a virtual address. */
  ZERO_BASED: ACCESS_ZERO_BASED,
  /** The peer may FLUSH: what it has written before is visible to all that read the memory. */
  FLUSH_GLOBAL: ACCESS_FLUSH_GLOBAL,
  /** The peer may FLUSH to persistent memory. Of queue pairs: memory of a process is not persistent. */
  FLUSH_PERSISTENT: ACCESS_FLUSH_PERSISTENT,
  /** READ, WRITE and atomics of a peer. */
  REMOTE_ALL: ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC,
} as const;
