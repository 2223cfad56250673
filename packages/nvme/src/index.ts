/** The entry of @rocev2/nvme. */

export {
  addBackendOptions,
  type BackendFlags,
  givenBackendOption,
  type OwnDisk,
  openOwnDisk,
} from './commands/backend-options.js';
