/** What `rocev2 bw` and `rocev2 lat` have in common: options, both roles, and the way out. */

import { Argument, type Command } from 'commander';
import { RoceError } from '../../core/errors.js';
import { chooseIo } from '../../driver/port-io.js';
import { CommandFailure, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_VERIFICATION_FAILED } from '../exit.js';
import { extensionOption } from '../extensions.js';
import { frameOption } from '../frame-wire.js';
import { endingInTime, FIGURES_MS, orInterrupted } from '../interruption.js';
import { addNicOptions } from '../nic-options.js';
import {
  addressOption,
  allowHostOption,
  countOption,
  messageSizeOption,
  mtuOption,
  optionWithDefault,
  portOption,
  positiveDurationOption,
  rangeOption,
} from '../options.js';
import { type CliIo, Output } from '../output.js';
import { addRecoveryOptions } from '../recovery-options.js';
import { resolveHost } from '../resolve-host.js';
import {
  connectToServer,
  type Endpoint,
  type EndpointOptions,
  serveOneClient,
  TRANSFER_OPS,
  type TransferOp,
  type TransferPlan,
} from './endpoint.js';
import { LOST_IS_SKIPPED, type LossRule, NOTHING_IS_LOST } from './latency.js';
import { addRateControlOptions, type RateControlFlags, rateControlOf } from './rate-control.js';
import { figuresOf, movedCounters, printHead, type TransferResult } from './result.js';
import { arrivedMessages, type Tally } from './run.js';
import { addTransportOption } from './transport.js';
import { verifyAsClient, verifyAsServer } from './verify.js';

/** Options of both commands, in the program's units. */
export interface TransferOptions extends EndpointOptions, RateControlFlags {
  /** Bytes of a message. */
  readonly size: number;
  /** UD: the size is not what somebody asked for, and follows the path MTU. */
  readonly mayShrink?: true;
  /** Messages on each queue pair. */
  readonly iters: number;
  /** Nanoseconds to run for, instead of `iters`. */
  readonly duration?: number;
  /** Queue pairs. */
  readonly qp: number;
  /** Sleep on completion events. */
  readonly events?: true;
  /** The other side is perftest. */
  readonly perftest?: true;
  /** With perftest: connect through RDMA CM. */
  readonly rdmaCm?: true;
  /** Print one JSON document. */
  readonly json?: true;
}

/** perftest's defaults where it has one. */
const TRANSFER_PORT = 18515;
const ATOMIC_BYTES = 8;

/** Adds the operation, HOST and all options. */
export function addTransferOptions(command: Command, defaults: { size: string; iterations: number }): Command {
  command
    .addArgument(new Argument('<op>', 'what to measure').choices(TRANSFER_OPS))
    .argument('[host]', 'the server; without it this is the server')
    .option('-p, --port <port>', 'TCP port on which the two sides meet', portOption, TRANSFER_PORT)
    .addOption(
      optionWithDefault('-s, --size <bytes>', 'message size (4096, 64KiB, 4MiB)', messageSizeOption, defaults.size),
    )
    .option('-n, --iters <n>', 'messages per queue pair', countOption, defaults.iterations)
    .option('-D, --duration <time>', 'run for a time (2s) instead of a number of messages', positiveDurationOption)
    .option('-m, --mtu <bytes>', 'path MTU: 256, 512, 1024, 2048 or 4096', mtuOption, 4096)
    .option(
      '--bind <address>',
      'IP address of this endpoint (server: 127.0.0.1; client: what the route says)',
      addressOption,
    )
    .option(
      '--frame <host:port[,rate]>',
      'plug into this port of a rocev2 switch, over a link of this rate (default 10Gbps); --bind says the address there',
      frameOption,
    )
    .option('--udp-port <port>', 'UDP port of this endpoint, for hosts with one address (default 4791)', portOption)
    .option('--loss <rules>', 'fault rules on this endpoint, e.g. random=0.001 or every=256 (docs/faults.md)')
    .option('--seed <n>', 'seed of random fault rules', countOption)
    .option(
      '-u, --timeout <code>',
      'local ACK timeout, 4.096 us x 2^code; 0 waits for ever (default: 14)',
      rangeOption(0, 31),
    )
    .option('--retry-cnt <n>', 'retries before the connection fails, 1 to 7 (default: 7)', rangeOption(1, 7))
    .option(
      '--total-timeout <code>',
      'how long the peer may be silent, coded like --timeout; 0: as long as --timeout and --retry-cnt say, the default with either of them and with --perftest (default: 22, 17 s)',
      rangeOption(0, 31),
    );
  addTransportOption(
    command,
    'as -c of perftest; uc has write and send, ud send of one packet, and neither repeats what is lost',
  );
  addNicOptions(command)
    .option('--pcap <file>', 'write what this endpoint sends and receives to a pcapng file')
    .option('--estats', "let 'rocev2 estats' look into this endpoint (docs/estats.md)")
    .option('--estats-http <host:port>', 'the same, and serve /metrics (Prometheus) and /estats.json there')
    .addOption(allowHostOption())
    .option(
      '--trace <file>',
      'write packets, losses, timeouts and rates of this endpoint as JSON lines (docs/events.md)',
    )
    .option('--json', 'print one JSON document');
  addRecoveryOptions(command);
  addRateControlOptions(command);
  return command.addOption(extensionOption());
}

/** How a tool does its part. */
export interface TransferTool {
  /** The command. */
  readonly name: 'bw' | 'lat';
  /** As perftest heads its output. */
  readonly title: 'BW' | 'Latency';
  /** Client: the measurement. */
  measure(endpoint: Endpoint, options: TransferOptions, loss: LossRule, output: Output): Promise<Tally>;
  /** Before either side may start: data, receives. */
  prepare(endpoint: Endpoint, role: 'client' | 'server'): void;
  /** Server: what it does while the client measures; ends when the endpoint closes. */
  serve(endpoint: Endpoint, options: TransferOptions): Promise<unknown>;
  /** The result for people. */
  print(output: Output, result: TransferResult): void;
}

/** Runs the client against `host`, or the server without one. Exit code 4 when the data was wrong. */
export async function runTransfer(
  tool: TransferTool,
  op: TransferOp,
  host: string | undefined,
  options: TransferOptions,
  io: CliIo,
): Promise<void> {
  const output = new Output(io, options.json === true);
  if (options.rdmaCm === true) {
    throw new RoceError('ERR_ROCE_CONFLICT', '-R needs --perftest', 'two of our own meet over TCP');
  }
  if (tool.name === 'lat' && options.size === 0 && op === 'write') {
    throw new RoceError(
      'ERR_ROCE_OUT_OF_RANGE',
      'a latency test of WRITE needs at least 1 byte',
      'the receiver waits for it to change',
    );
  }
  const { reason } = chooseIo(options.io);
  if (reason !== undefined) output.note(`node:dgram carries the packets, without batches and ECN: ${reason}`);
  if (host === undefined) await runServer(tool, op, options, output);
  else await runClient(tool, op, await resolveHost(host), options, output);
}

function planOf(tool: TransferTool, op: TransferOp, options: TransferOptions): TransferPlan {
  return {
    tool: tool.name,
    op,
    transport: options.transport,
    sizeBytes: op === 'atomic' ? ATOMIC_BYTES : options.size,
    iterations: options.duration === undefined ? options.iters : 0,
    durationNs: options.duration ?? 0,
    qps: options.qp,
    rateControl: rateControlOf(options),
  };
}

async function runClient(
  tool: TransferTool,
  op: TransferOp,
  host: string,
  options: TransferOptions,
  output: Output,
): Promise<void> {
  const { interrupted } = output.io;
  const endpoint = await connectToServer(host, options, planOf(tool, op, options), interrupted);
  try {
    printHead(output, endpoint, tool.title);
    tool.prepare(endpoint, 'client');
    const work = measure(tool, endpoint, options, output);
    const { measured, verified, arrived } = await endingInTime(work, interrupted, FIGURES_MS);
    const tally = arrived === undefined ? measured : { ...measured, ...arrivalsOf(measured, arrived) };
    const moved = tally.counts.some((count) => count > 0);
    const result = resultOf(endpoint, options, tally, verified && moved);
    tool.print(output, result);
    output.document(result);
    if (!moved && tally.lost !== 0 && !interrupted.aborted)
      throw new CommandFailure(EXIT_FAILED, `all of the ${tally.lost} messages were lost`);
    if (!verified)
      throw new CommandFailure(EXIT_VERIFICATION_FAILED, 'the data that arrived is not the data that was sent');
    if (interrupted.aborted) throw new CommandFailure(EXIT_INTERRUPTED);
  } finally {
    await endpoint.close();
  }
}

/** Client: the traffic, and what the server then says of it. */
async function measure(tool: TransferTool, endpoint: Endpoint, options: TransferOptions, output: Output) {
  await endpoint.channel.barrier('ready');
  const measured = await tool.measure(endpoint, options, lossRuleOf(options), output);
  return { measured, ...(await verifyAsClient(endpoint, measured.counts)) };
}

function lossRuleOf({ transport }: TransferOptions): LossRule {
  return transport === 'rc' ? NOTHING_IS_LOST : LOST_IS_SKIPPED;
}

/** What a sender that nobody acknowledges has sent, as its receiver counts it. */
function arrivalsOf({ counts }: Tally, arrived: number): Pick<Tally, 'counts' | 'lost'> {
  return { counts: [arrived], lost: counts.reduce((sum, count) => sum + count, 0) - arrived };
}

async function runServer(tool: TransferTool, op: TransferOp, options: TransferOptions, output: Output): Promise<void> {
  const { transport } = options;
  const suffix = transport === 'rc' ? '' : ` --transport ${transport}`;
  const endpoint = await serveOneClient({ tool: tool.name, op, transport }, options, output.io, {
    onListening: (description, host) =>
      output.note(`waiting for 'rocev2 ${tool.name} ${op} ${host}${suffix}' on port ${options.port}, ${description}`),
    onStranger: (peer, why) => output.note(`${peer} was not the client: ${why}`),
  });
  try {
    printHead(output, endpoint, tool.title);
    tool.prepare(endpoint, 'server');
    await endingInTime(endpoint.channel.barrier('ready'), output.io.interrupted);
    const serving = tool.serve(endpoint, options);
    // Whichever ends first: the client being done, or trouble in serving.
    const verdict = Promise.race([verifyAsServer(endpoint), serving.then(() => verifyAsServer(endpoint))]);
    const verified = await orInterrupted(verdict, output.io.interrupted);
    if (verified === undefined) throw new CommandFailure(EXIT_INTERRUPTED);
    output.line(verified ? ' data verified by the client' : ' the client found the data WRONG');
    const counted = tool.name === 'bw' && transport !== 'rc' ? { arrived: arrivedMessages(endpoint) } : {};
    output.document({ role: 'server', op, transport, verified, ...counted, counters: movedCounters(endpoint) });
    if (!verified) throw new CommandFailure(EXIT_VERIFICATION_FAILED);
  } finally {
    await endpoint.close();
  }
}

function resultOf(endpoint: Endpoint, options: TransferOptions, tally: Tally, verified: boolean): TransferResult {
  const { plan, lanes } = endpoint;
  return {
    op: plan.op,
    ...figuresOf(plan, tally),
    verified,
    recovery: options.transport === 'rc' ? options.recovery : 'none',
    io: chooseIo(options.io).io,
    engine: options.engine,
    mtu: lanes[0].agreement.mtu,
    counters: movedCounters(endpoint),
  };
}
