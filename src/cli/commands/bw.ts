/** `rocev2 bw`: throughput between two endpoints, in the manner of ib_write_bw, ib_read_bw, ib_send_bw and ib_atomic_bw. */

import type { Command } from 'commander';
import { countOption } from '../options.js';
import { type CliIo, Output } from '../output.js';
import { addTransferOptions, runTransfer, type TransferOptions, type TransferTool } from '../transfer/command.js';
import type { TransferOp } from '../transfer/endpoint.js';
import { runPerftest } from '../transfer/perftest.js';
import { printBandwidth } from '../transfer/result.js';
import { drainReceives, prepare, pump } from '../transfer/run.js';
import { optionsForTransport } from '../transfer/transport.js';

const bandwidth: TransferTool = {
  name: 'bw',
  title: 'BW',
  prepare,
  measure: async (endpoint, options, _, output) => {
    const progress = output.progress(100);
    try {
      return await pump(endpoint, output.io, options.txDepth, progress);
    } finally {
      progress.stop();
    }
  },
  serve: (endpoint) => (endpoint.plan.op === 'send' ? drainReceives(endpoint) : new Promise(() => {})),
  print: printBandwidth,
};

/** Adds `rocev2 bw` to `program`. */
export function register(program: Command, io: CliIo): void {
  addTransferOptions(
    program.command('bw').description('Measure throughput of RDMA WRITE, READ, SEND or atomics between two endpoints.'),
    { size: '64KiB', iterations: 5000 },
  )
    .option('-q, --qp <n>', 'queue pairs', countOption, 1)
    .option('-t, --tx-depth <n>', 'messages in flight per queue pair', countOption, 128)
    .option('--perftest', 'the other side is the stock ib_write_bw, ib_read_bw, ib_send_bw or ib_atomic_bw')
    .option('-R, --rdma-cm', 'with --perftest: connect through rdma_cm, as perftest -R does')
    .addHelpText(
      'after',
      `
Start the server first, then the client in another terminal. The data is
verified at the end; exit code 4 says it was wrong.

Examples:
  rocev2 bw write
  rocev2 bw write 127.0.0.1
  rocev2 bw read 127.0.0.1 -s 4MiB -D 5s --json
  rocev2 bw write 127.0.0.1 --cc dcqcn --rate 10Gbps       # docs/congestion-control.md
  rocev2 bw write 192.0.2.7 --perftest -s 64KiB -n 1000     # the server runs: ib_write_bw -x GID_INDEX -n 1000
  rocev2 bw send 127.0.0.1 --loss random=0.001 --recovery selective-repeat --pcap trace.pcapng`,
    )
    .action((op: TransferOp, host: string | undefined, given: TransferOptions, command: Command) => {
      const options = optionsForTransport(op, given, command);
      return options.perftest === true
        ? runPerftest('bw', op, host, options, new Output(io, options.json === true))
        : runTransfer(bandwidth, op, host, options, io);
    });
}
