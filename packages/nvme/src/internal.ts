/**
 * What the other packages of this repository use of @rocev2/nvme, besides its public entry. It changes without notice.
 */

export {
  addBackendOptions,
  type BackendFlags,
  givenBackendOption,
  type OwnDisk,
  openOwnDisk,
} from './commands/backend-options.js';
