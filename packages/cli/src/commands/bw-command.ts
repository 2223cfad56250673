/**
 * `rocev2 bw`: throughput between two endpoints, in the manner of ib_write_bw, ib_read_bw, ib_send_bw and ib_atomic_bw.
 */

import { type CliIo, Output } from '@rocev2/command';
import { addSweepOutputOptions, collect, type SweepOutputOptions } from '@rocev2/lab/internal';
import type { Command } from 'commander';
import { addTransferOptions, transferAction } from '../transfer/command.js';
import type { TransferOp } from '../transfer/endpoint.js';
import { sweepTransfers } from '../transfer/sweep.js';
import { bandwidth } from '../transfer/tool.js';
import type { TransferOptions } from '../transfer/transfer-options.js';

export function register(program: Command, io: CliIo): void {
  const command = addTransferOptions(
    program.command('bw').description('Measure throughput of RDMA WRITE, READ, SEND or atomics between two endpoints.'),
    'bw',
  ).option(
    '--over <option=values>',
    'without a host: run once for each value of this option, between two processes; may be repeated',
    collect,
  );
  addSweepOutputOptions(command)
    .addHelpText(
      'after',
      `
Start the server first, then the client in another terminal. The data is
verified at the end; exit code 4 means that it was wrong.

Examples:
  rocev2 bw write
  rocev2 bw write 127.0.0.1
  rocev2 bw read 127.0.0.1 -s 4MiB -D 5 -i 1 --json
  rocev2 bw send 127.0.0.1 -a -b                            # all sizes, both directions
  rocev2 bw write 127.0.0.1 --cc dcqcn --rate 10Gbps       # docs/congestion-control.md
  rocev2 bw write 192.0.2.7 --perftest -s 64KiB -n 1000     # the server runs: ib_write_bw -x GID_INDEX -n 1000
  rocev2 bw send 127.0.0.1 --faults random=0.001 --recovery selective-repeat --pcap trace.pcapng
  rocev2 bw write -n 500 --faults random=0.001 --over recovery=go-back-n,selective-repeat --over seed=1..5 --plot loss.svg`,
    )
    .action(
      async (op: TransferOp, host: string | undefined, given: TransferOptions & SweepOutputOptions, self: Command) => {
        if ([given.over, given.csv, given.plot, given.y].every((option) => option === undefined)) {
          await transferAction({ tool: bandwidth, op, host, options: given }, self, io);
        } else await sweepTransfers({ op, host, options: given }, self, new Output(io, false));
      },
    );
}
