import { checkKind, checkOptions, checkText, checkWhole, type OptionNames } from '../../core/arguments.js';
import { NS_PER_S } from '../../core/units.js';
import type { RdmaDevice } from '../../verbs/device.js';
import type { SecureOptions } from '../../verbs/security.js';
import type { BlockDevice } from '../disk/block-device.js';
import { checkDiskLimit, type DiskLimit } from '../fair/rate-limit.js';
import { checkInlineWriteBytesMax } from '../sk/request.js';
import { checkNamedDisk, checkServedDevice, type NamedDisk } from '../sk/served-disk.js';
import { FLOW_OPTIONS, type FlowOptions, flowTerms } from './flow-options.js';

/** Addresses, disks and limits of a storage server. */
export interface StorageServerOptions extends FlowOptions {
  /** Disks without names; clients select one by its index. The caller closes them. Default: none. */
  readonly disks?: readonly BlockDevice[] | undefined;
  /** Disks that clients select by name; `StorageServer.addDisk` adds more. The caller closes them. Default: none. */
  readonly namedDisks?: readonly NamedDisk[] | undefined;
  /** How long the lease of a silent client lasts, nanoseconds, 5 s and more. Default 10 s. */
  readonly leaseNs?: number | undefined;
  /** Address to listen on. */
  readonly host: string;
  /** TCP port; with 0 the system chooses. */
  readonly port: number;
  /** Device for RDMA; without it the server uses only TCP. Its credentials also protect TCP. The caller closes it. */
  readonly device?: RdmaDevice | undefined;
  /** Credentials of a server without a device: TCP is protected by TLS 1.3. */
  readonly secure?: SecureOptions | undefined;
  /** Largest write in bytes that may be part of its request, 0..8192. Default 8192. */
  readonly inlineWriteBytesMax?: number | undefined;
  /**
   * Bytes of registered memory for data in flight, for all clients over RDMA together, 1 MiB and more. Default 64 MiB.
   */
  readonly poolBytesMax?: number | undefined;
  /** Bytes of requests and answers in memory, for all clients over TCP together, 96 MiB and more. Default 192 MiB. */
  readonly memoryBytesMax?: number | undefined;
  /** Limits of each disk without a name, for all clients together. Default: unlimited. */
  readonly limit?: DiskLimit | undefined;
  /**
   * Most bytes of outstanding READs from all clients together: about as much as the port's link holds. Default 4 MiB.
   */
  readonly pullBytesMax?: number | undefined;
  /** Called with messages for the operator: clients that were refused because they expect another disk. */
  readonly onNotice?: ((notice: string) => void) | undefined;
}

const SERVER_OPTIONS: OptionNames<StorageServerOptions> = {
  disks: true,
  namedDisks: true,
  leaseNs: true,
  host: true,
  port: true,
  device: true,
  secure: true,
  ...FLOW_OPTIONS,
  inlineWriteBytesMax: true,
  poolBytesMax: true,
  memoryBytesMax: true,
  limit: true,
  pullBytesMax: true,
  onNotice: true,
};
/** Shortest lease: live clients send every second, and reconnect after 3 s of silence. */
export const LEASE_NS_MIN = 5 * NS_PER_S;
const MEMORY_BYTES_MIN = 96 << 20;
const POOL_BYTES_MIN = 1 << 20;
/** Optional whole numbers, each with its range. */
const RANGES = {
  poolBytesMax: [POOL_BYTES_MIN, Number.MAX_SAFE_INTEGER],
  pullBytesMax: [1, Number.MAX_SAFE_INTEGER],
} as const;

export function checkServerOptions(options: StorageServerOptions): void {
  checkOptions('StorageServer.open', options, SERVER_OPTIONS);
  flowTerms(options);
  const { limit, memoryBytesMax, leaseNs, disks = [], namedDisks = [], onNotice } = options;
  checkText('host', options.host);
  checkWhole('port', options.port, 0, 65_535);
  checkKind('disks', disks, Array.isArray(disks), 'a list of BlockDevices');
  for (const disk of disks) checkServedDevice(disk);
  checkKind('namedDisks', namedDisks, Array.isArray(namedDisks), 'a list of { name, device }');
  checkKind('onNotice', onNotice, onNotice === undefined || typeof onNotice === 'function', 'a function');
  if (options.inlineWriteBytesMax !== undefined) checkInlineWriteBytesMax(options.inlineWriteBytesMax);
  for (const [name, [min, max]] of Object.entries(RANGES)) {
    const value = options[name as keyof typeof RANGES];
    if (value !== undefined) checkWhole(name, value, min, max);
  }
  for (const disk of namedDisks) checkNamedDisk(disk);
  if (leaseNs !== undefined) checkWhole('leaseNs', leaseNs, LEASE_NS_MIN, Number.MAX_SAFE_INTEGER);
  if (limit !== undefined) checkDiskLimit(limit);
  if (memoryBytesMax !== undefined) {
    checkWhole('memoryBytesMax', memoryBytesMax, MEMORY_BYTES_MIN, Number.MAX_SAFE_INTEGER);
  }
}
