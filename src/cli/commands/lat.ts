/** `rocev2 lat`: latency between two endpoints, in the manner of ib_write_lat, ib_read_lat, ib_send_lat and ib_atomic_lat. */

import type { Command } from 'commander';
import { type CliIo, Output } from '../output.js';
import { addTransferOptions, runTransfer, type TransferOptions, type TransferTool } from '../transfer/command.js';
import type { TransferOp } from '../transfer/endpoint.js';
import { answerLatency, measureLatency, NOTHING_IS_LOST } from '../transfer/latency.js';
import { runPerftest } from '../transfer/perftest.js';
import { printLatency } from '../transfer/result.js';
import { prepare } from '../transfer/run.js';
import { optionsForTransport } from '../transfer/transport.js';

/** One message is in flight; its completion may be polled a few rounds late. */
const TX_DEPTH = 16;

const latency: TransferTool = {
  name: 'lat',
  title: 'Latency',
  prepare,
  measure: async (endpoint, options, loss, output) => {
    const progress = output.progress(100);
    try {
      return await measureLatency(endpoint, output.io, options.events === true ? 'events' : 'poll', loss, progress);
    } finally {
      progress.stop();
    }
  },
  // However long the client's next message takes: its end is the end of the connection.
  serve: (endpoint, options) => answerLatency(endpoint, options.events === true ? 'events' : 'poll', NOTHING_IS_LOST),
  print: printLatency,
};

/** Adds `rocev2 lat` to `program`. */
export function register(program: Command, io: CliIo): void {
  addTransferOptions(
    program.command('lat').description('Measure latency of RDMA WRITE, READ, SEND or atomics between two endpoints.'),
    { size: '2', iterations: 1000 },
  )
    .option('-e, --events', 'sleep on completion events instead of asking in every turn of the event loop')
    .option('--perftest', 'the other side is the stock ib_write_lat, ib_read_lat, ib_send_lat or ib_atomic_lat')
    .option('-R, --rdma-cm', 'with --perftest: connect through rdma_cm, as perftest -R does')
    .addHelpText(
      'after',
      `
WRITE and SEND are echoed and half of the round trip is shown; READ and atomics
are one-sided and shown whole. Both sides ask for completions in every turn of
the event loop, which costs a core; -e sleeps instead. WRITE always asks: it
waits for memory to change.

Examples:
  rocev2 lat read
  rocev2 lat read 127.0.0.1 -s 4096
  rocev2 lat send 127.0.0.1 -e --json
  rocev2 lat write 192.0.2.7 --perftest -n 1000      # the server runs: ib_write_lat -x GID_INDEX -n 1000`,
    )
    .action((op: TransferOp, host: string | undefined, given: TransferOptions, command: Command) => {
      const options = { ...optionsForTransport(op, given, command), qp: 1, txDepth: TX_DEPTH };
      return options.perftest === true
        ? runPerftest('lat', op, host, options, new Output(io, options.json === true))
        : runTransfer(latency, op, host, options, io);
    });
}
