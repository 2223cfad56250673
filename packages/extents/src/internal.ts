/**
 * What the other packages of this repository use of @rocev2/extents, besides its public entry. It changes without
 * notice.
 */

export {
  isStreamBackend,
  openClusterOf,
  openStandingBackend,
  openStreamBackend,
  parseStreamBackend,
} from './commands/stream-backend.js';
export type { StandbyDisk } from './disk/standby-disk.js';
