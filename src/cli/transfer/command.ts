/** What `rocev2 bw` and `rocev2 lat` have in common: options, both roles, and the way out. */

import { Argument, type Command } from 'commander';
import { RoceError } from '../../core/errors.js';
import { chooseIo } from '../../driver/port-io.js';
import { CommandFailure, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_VERIFICATION_FAILED } from '../exit.js';
import { extensionOption } from '../extensions.js';
import { frameOption } from '../frame-wire.js';
import { endingWithFigures } from '../interruption.js';
import { addNicOptions } from '../nic-options.js';
import {
  addressOption,
  allowHostOption,
  countOption,
  portOrAnyOption,
  rangeOption,
  secondsOption,
} from '../options.js';
import { type CliIo, Output } from '../output.js';
import { addRecoveryOptions, recoveryOf } from '../recovery-options.js';
import { resolveHost } from '../resolve-host.js';
import { consistentOptions } from './consistent-options.js';
import {
  connectToServer,
  type Endpoint,
  type EndpointOptions,
  serveOneClient,
  TRANSFER_OPS,
  type TransferOp,
} from './endpoint.js';
import { acceptedFlagsText, addPerftestFlags, perftestFlagNotes } from './flag-options.js';
import type { ToolName } from './flags.js';
import { runPerftest } from './perftest.js';
import { planOf } from './plan.js';
import { addRateControlOptions, type RateControlFlags, rateControlOf } from './rate-control.js';
import { documentOf, expectLimits, printHead, resultOf, type TransferResult } from './result.js';
import { type RoundContext, roundAsClient, roundsAsServer } from './rounds.js';
import { beginRound, prepare, sizesOf } from './run.js';
import type { TransferTool } from './tool.js';
import { optionsForTransport } from './transport.js';

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
  /** Every power of two from 2 bytes to `size`. */
  readonly all?: true;
  /** No end but Ctrl-C; `duration` is then the time between two lines. */
  readonly runInfinitely?: true;
  /** Both sides send. */
  readonly bidirectional?: true;
  /** Messages posted with one doorbell. */
  readonly postList: number;
  /** Every nth message has a completion. */
  readonly cqMod: number;
  /** No search for the peak. */
  readonly noPeak?: true;
  /** Gb/s instead of MiB/s. */
  readonly reportGbits?: true;
  /** Tell how busy the processors were. */
  readonly cpuUtil?: true;
  /** The least average that is a success, in the unit of the report. */
  readonly limitBw?: number;
  /** The least message rate that is a success, in millions a second. */
  readonly limitMsgrate?: number;
  /** Nanoseconds between two lines of progress. */
  readonly interval?: number;
  /** Sleep on completion events. */
  readonly events?: true;
  /** The other side is perftest. */
  readonly perftest?: true;
  /** With perftest: connect through RDMA CM. */
  readonly rdmaCm?: true;
  /** Print one JSON document. */
  readonly json?: true;
}

/** Adds the operation, HOST and all options: those of perftest, then ours. */
export function addTransferOptions(command: Command, tool: ToolName): Command {
  command
    .addArgument(new Argument('<op>', 'what to measure').choices(TRANSFER_OPS))
    .argument('[host]', 'the server; without it this is the server');
  addPerftestFlags(command, tool)
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
    .option(
      '--udp-port <port>',
      'UDP port of this endpoint, for hosts with one address; 0: the system chooses (default: 4791)',
      portOrAnyOption,
    )
    .option('--loss <rules>', 'fault rules on this endpoint, e.g. random=0.001 or every=256 (docs/faults.md)')
    .option('--seed <n>', 'seed of random fault rules', countOption)
    .option(
      '--total-timeout <code>',
      'how long the peer may be silent, coded like --timeout; 0: as long as --timeout and --retry-cnt say, the default with either of them and with --perftest (default: 22, 17 s)',
      rangeOption(0, 31),
    );
  if (tool === 'bw') command.option('-i, --interval <time>', 'print a line every so often (1 is 1s)', secondsOption);
  addNicOptions(command)
    .option('--pcap <file>', 'write what this endpoint sends and receives to a pcapng file')
    .option('--estats', "let 'rocev2 estats' look into this endpoint (docs/estats.md)")
    .option('--estats-http <host:port>', 'the same, and serve /metrics (Prometheus) and /estats.json there')
    .addOption(allowHostOption())
    .option(
      '--trace <file>',
      'write packets, losses, timeouts and rates of this endpoint as JSON lines (docs/events.md)',
    )
    .option(
      '--perftest',
      `the other side is the stock ib_write_${tool}, ib_read_${tool}, ib_send_${tool} or ib_atomic_${tool}`,
    )
    .option('--json', 'print one JSON document')
    .addHelpText('after', `\n${acceptedFlagsText()}`);
  addRecoveryOptions(command);
  addRateControlOptions(command);
  return command.addOption(extensionOption());
}

/** Runs the client against `host`, or the server without one. Exit code 4 when the data was wrong. */
async function runTransfer(
  tool: TransferTool,
  op: TransferOp,
  host: string | undefined,
  options: TransferOptions,
  output: Output,
): Promise<void> {
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

/** What was typed. */
export interface TypedTransfer {
  /** The command. */
  readonly tool: TransferTool;
  /** What to measure. */
  readonly op: TransferOp;
  /** The server; without it this is the server. */
  readonly host: string | undefined;
  /** As commander reads them. */
  readonly options: TransferOptions;
}

/** What both commands do with what was typed; `command` knows which options were. */
export async function transferAction(typed: TypedTransfer, command: Command, io: CliIo): Promise<void> {
  const { tool, op, host, options: given } = typed;
  const output = new Output(io, given.json === true);
  const notes = perftestFlagNotes(command);
  const options = consistentOptions(op, optionsForTransport(op, given, command), command);
  // A server uses the client's; what it was told itself is checked all the same, before it waits for anybody.
  rateControlOf(options);
  recoveryOf(options);
  for (const note of notes) output.note(note);
  if (options.perftest === true) await runPerftest(tool, op, host, options, output);
  else await runTransfer(tool, op, host, options, output);
}

async function runClient(
  tool: TransferTool,
  op: TransferOp,
  host: string,
  options: TransferOptions,
  output: Output,
): Promise<void> {
  const { interrupted } = output.io;
  const endpoint = await connectToServer(host, options, planOf(tool.name, op, options), interrupted);
  try {
    printHead(output, endpoint, tool.title);
    prepare(endpoint, 'client');
    const results = await measureSizes({ tool, options, output }, endpoint);
    tool.print(output, results, options);
    const result = results.at(-1)!;
    output.document(tool.name, documentOf('client', results, endpoint.plan.allSizes));
    const moved = results.some(({ iterations }) => iterations > 0);
    if (!moved && result.lost !== 0 && !interrupted.aborted)
      throw new CommandFailure(EXIT_FAILED, `all of the ${result.lost} messages were lost`);
    if (!results.every(({ verified, iterations }) => verified || iterations === 0))
      throw new CommandFailure(EXIT_VERIFICATION_FAILED, 'the data that arrived is not the data that was sent');
    if (interrupted.aborted) throw new CommandFailure(EXIT_INTERRUPTED);
    expectLimits(result, options);
  } finally {
    await endpoint.close();
  }
}

/** Client: one round for each size, until Ctrl-C. */
async function measureSizes(context: RoundContext, endpoint: Endpoint): Promise<TransferResult[]> {
  const { tool, options, output } = context;
  const { interrupted } = output.io;
  const serve = endpoint.plan.bidirectional ? tool.answer(endpoint, options) : undefined;
  const sizes = sizesOf(endpoint.plan);
  const results: TransferResult[] = [];
  for (const size of sizes) {
    const round = beginRound(endpoint, size);
    const playing = roundAsClient(context, round, serve, size === sizes.at(-1));
    results.push(resultOf(options, await endingWithFigures(playing, output.io)));
    if (interrupted.aborted) break;
  }
  return results;
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
    prepare(endpoint, 'server');
    const serve = tool.answer(endpoint, options);
    const served = await roundsAsServer({ tool, options, output }, endpoint, sizesOf(endpoint.plan), serve);
    if (served === undefined) throw new CommandFailure(EXIT_INTERRUPTED);
    const verified = served.every((round) => round.verified);
    output.line(verified ? ' data verified by the client' : ' the client found the data WRONG');
    output.document(tool.name, documentOf('server', served, endpoint.plan.allSizes));
    if (!verified) throw new CommandFailure(EXIT_VERIFICATION_FAILED);
  } finally {
    await endpoint.close();
  }
}
