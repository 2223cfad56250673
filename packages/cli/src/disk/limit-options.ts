/** `--iops`, `--bandwidth` and `--memory`: what the clients of a disk may use together. */

import { countOption, sizeOption } from '@rocev2/command';
import type { Command } from 'commander';
import type { DiskLimit } from 'rocev2/internal/disk';

/** The options in the program's units. */
export interface LimitFlags {
  /** Requests a second. */
  readonly iops?: number;
  /** Bytes a second. */
  readonly bandwidth?: number;
  /** Bytes of data in memory. */
  readonly memory?: number;
}

/** Adds the options to a command. */
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

/** The same as options of a server. */
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
