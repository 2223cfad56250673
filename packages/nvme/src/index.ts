/**
 * `@rocev2/nvme`: NVMe over Fabrics, over RDMA and TCP: targets that serve disks, and namespaces of any target as
 * disks.
 *
 * @module @rocev2/nvme
 */

export type { BlockDevice, BlockExtent, WriteOptions, WriteZeroesOptions } from 'rocev2/internal/disk';
export { BLOCK_ERRNOS, BlockDeviceError, type BlockErrno, MemoryDevice } from 'rocev2/internal/disk';
export { ANA_STATES, type AnaState } from './ana.js';
export type { CommandFaultCount } from './command-faults.js';
export type { NvmePort } from './discovery.js';
export {
  type NamespaceCounters,
  NvmeTargetServer,
  type NvmeTargetServerOptions,
} from './live/nvme-target-server.js';
export type { NvmeHostTlsKey } from './live/nvme-tls.js';
export { type OpenNvmeOptions, openNvme } from './live/open-nvme.js';
export type { NvmeHostSecrets, NvmeSubsystemOptions } from './live/subsystem-init.js';
export { NvmeStatusError } from './status.js';
export type { NvmeTransport } from './target-connection.js';
