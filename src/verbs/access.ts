/** Access flags by name, as users write them. */

import {
  ACCESS_LOCAL_WRITE,
  ACCESS_MW_BIND,
  ACCESS_REMOTE_ATOMIC,
  ACCESS_REMOTE_READ,
  ACCESS_REMOTE_WRITE,
  ACCESS_ZERO_BASED,
} from '../ring/enums.js';

/** `ibv_access_flags`: combine with `|`. Local read is always allowed. */
export const Access = {
  LOCAL_WRITE: ACCESS_LOCAL_WRITE,
  REMOTE_WRITE: ACCESS_REMOTE_WRITE,
  REMOTE_READ: ACCESS_REMOTE_READ,
  REMOTE_ATOMIC: ACCESS_REMOTE_ATOMIC,
  MW_BIND: ACCESS_MW_BIND,
  ZERO_BASED: ACCESS_ZERO_BASED,
  /** Everything a peer may do. */
  REMOTE_ALL: ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC,
} as const;
