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
    .option('--iops <n>', 'most requests per second, of all clients together', countOption)
    .option('--bandwidth <size>', 'most bytes per second, of all clients together, e.g. 100MiB', sizeOption)
    .option(
      '--memory <size>',
      'most memory for data of requests, of all clients together (default: 192MiB)',
      sizeOption,
    );
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
