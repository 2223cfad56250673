import { countOption, sizeOption } from '@rocev2/command';
import type { Command } from 'commander';
import type { DiskLimit } from 'rocev2/internal/disk';

export interface LimitFlags {
  readonly iops?: number;
  readonly bandwidth?: number;
  /** Bytes of data in memory. */
  readonly memory?: number;
}

export function addLimitOptions(command: Command): Command {
  return command
    .option('--iops <n>', 'total limit for all clients: requests per second', countOption)
    .option('--bandwidth <size>', 'total limit for all clients: bytes per second, e.g. 100MiB', sizeOption)
    .option('--memory <size>', 'total limit for all clients: buffer memory (default: 192MiB)', sizeOption);
}

export function limitsOf({ iops, bandwidth, memory }: LimitFlags): { limit?: DiskLimit; memoryBytesMax?: number } {
  const limit = {
    ...(iops !== undefined && { iops }),
    ...(bandwidth !== undefined && { bytesPerSecond: bandwidth }),
  };
  return {
    ...(Object.keys(limit).length > 0 && { limit }),
    ...(memory !== undefined && { memoryBytesMax: memory }),
  };
}
