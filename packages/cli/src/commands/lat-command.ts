import type { CliIo } from '@rocev2/command';
import type { Command } from 'commander';
import { addTransferOptions, transferAction } from '../transfer/command.js';
import type { TransferOp } from '../transfer/endpoint.js';
import { latency } from '../transfer/tool.js';
import type { TransferOptions } from '../transfer/transfer-options.js';

const LATENCY_OPTIONS = { qp: 1, txDepth: 16, postList: 1, cqMod: 1 } as const;

export function register(program: Command, io: CliIo): void {
  addTransferOptions(
    program.command('lat').description('Measure latency of RDMA WRITE, READ, SEND or atomics between two endpoints.'),
    'lat',
  )
    .addHelpText(
      'after',
      `
WRITE and SEND are echoed, and the result is half of the round trip. For READ
and atomics, which are one-sided, it is the whole round trip. Both sides poll
continuously, which uses a core each; -e sleeps instead. WRITE always polls,
because it waits for memory to change.

Examples:
  rocev2 lat read
  rocev2 lat read 127.0.0.1 -s 4096
  rocev2 lat send 127.0.0.1 -e --json
  rocev2 lat send 127.0.0.1 -a -n 100                # all sizes from 2 bytes to 8 MiB
  rocev2 lat write 192.0.2.7 --perftest -n 1000      # the server runs: ib_write_lat -x GID_INDEX -n 1000`,
    )
    .action((op: TransferOp, host: string | undefined, given: TransferOptions, command: Command) =>
      transferAction({ tool: latency, op, host, options: { ...given, ...LATENCY_OPTIONS } }, command, io),
    );
}
