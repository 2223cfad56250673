/** The entry of @rocev2/nvme. */

export {
  addBackendOptions,
  type BackendFlags,
  DISK_CLOSING_MS,
  givenBackendOption,
  type OwnDisk,
  openOwnDisk,
} from './commands/backend-options.js';
export type { OpenedDisk } from './commands/nvme-backend.js';
