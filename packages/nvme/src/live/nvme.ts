/**
 * `rocev2/nvme`: NVMe over Fabrics, over RDMA and TCP: targets that serve disks, and namespaces of any target as disks.
 *
 * @module rocev2/nvme
 */

export type { BlockDevice, BlockExtent, WriteOptions, WriteZeroesOptions } from '../disk/block-device.js';
export { BLOCK_ERRNOS, BlockDeviceError, type BlockErrno } from '../disk/block-device.js';
export { MemoryDevice } from '../disk/memory-device.js';
export { ANA_STATES, type AnaState } from '../nvme/ana.js';
export type { CommandFaultCount } from '../nvme/command-faults.js';
export type { NvmePort } from '../nvme/discovery.js';
export { NvmeStatusError } from '../nvme/status.js';
export type { NvmeTransport } from '../nvme/target-connection.js';
export {
  type NamespaceCounters,
  type NvmeHostSecrets,
  type NvmeSubsystemOptions,
  NvmeTargetServer,
  type NvmeTargetServerOptions,
} from './nvme-target-server.js';
export type { NvmeHostTlsKey } from './nvme-tls.js';
export { type OpenNvmeOptions, openNvme } from './open-nvme.js';
