import { counted, type Output, rangeOption, sizeOption } from '@rocev2/command';
import type { Command } from 'commander';
import type { IpAddress } from 'rocev2/internal/packet';
import type { ManyConnectionsOptions } from './many-connections.js';

const DEFAULT_COUNT = 10;
const DEFAULT_SIZE_BYTES = 100;
const COUNT_MAX = 4096;

export interface BothWaysOptions extends ManyConnectionsOptions {
  readonly count: number;
  /** Bytes of a message. */
  readonly size: number;
}

export function addBothWaysOptions(command: Command, { count, size }: { count: string; size: string }): Command {
  return command
    .option('-C, --count <n>', count, rangeOption(0, COUNT_MAX), DEFAULT_COUNT)
    .option('-S, --size <size>', size, sizeOption, DEFAULT_SIZE_BYTES)
    .option('--json', 'print one JSON document');
}

export interface BothWaysOutcome {
  readonly peer: IpAddress;
  readonly seconds: number;
}

/** Prints the result and returns the fields of its document. `messages`: what the command calls them, in the plural. */
export function reportBothWays(
  messages: string,
  { server, connections, count, size }: BothWaysOptions,
  { peer, seconds }: BothWaysOutcome,
  output: Output,
) {
  const each = `${count} ${messages} of ${size} bytes each way`;
  output.line(`${counted(connections, 'connection')}, ${each}, in ${seconds.toFixed(2)} seconds`);
  const role: 'client' | 'server' = server === undefined ? 'server' : 'client';
  return { role, peer: peer.text, connections, iterations: count, sizeBytes: size, seconds };
}
