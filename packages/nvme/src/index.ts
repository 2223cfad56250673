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
export type { DiscoveredSubsystem } from './discovery.js';
export type { ControllerIdentity, NamespaceIdentity } from './host/nvme-host.js';
export type { NamespaceCounters } from './live/nvme-target-server.js';
export type { ReservationState, ReservationStore } from './reservations.js';
