import {
  addExtensionOption,
  addFaultsOption,
  addNetworkOptions,
  addNicOptions,
  addRateControlOptions,
  addRecoveryOptions,
  addressOption,
  addSecureOptions,
  allowHostOption,
  type CliIo,
  CommandFailure,
  countOption,
  EXIT_FAILED,
  EXIT_INTERRUPTED,
  EXIT_VERIFICATION_FAILED,
  endingWithFigures,
  frameOption,
  Output,
  portOrAnyOption,
  rangeOption,
  rateControlOf,
  recoveryOf,
  resolveHost,
  secondsOption,
  secondsUpToOption,
} from '@rocev2/command';
import { Argument, type Command } from 'commander';
import { WARM_UP_MS_MAX } from 'rocev2/internal/cm';
import { RoceError } from 'rocev2/internal/core';
import { chooseIo } from 'rocev2/internal/driver';
import { consistentOptions } from './consistent-options.js';
import { connectToServer, type Endpoint, serveOneClient, TRANSFER_OPS, type TransferOp } from './endpoint.js';
import { acceptedFlagsText, addPerftestFlags, perftestFlagNotes } from './flag-options.js';
import type { ToolName } from './flags.js';
import { runPerftest } from './perftest.js';
import { planOf } from './plan.js';
import { documentOf, expectLimits, printHead, resultOf, resultPrinter, type TransferResult } from './result.js';
import { type RoundContext, roundAsClient, roundsAsServer } from './rounds.js';
import type { TransferTool } from './tool.js';
import type { TransferOptions } from './transfer-options.js';
import { beginRound, prepare, sizesOf } from './transfer-round.js';
import { optionsForTransport, type WrittenTransferOptions } from './transport.js';

export function addTransferOptions(command: Command, tool: ToolName): Command {
  command
    .addArgument(new Argument('<op>', 'what to measure').choices(TRANSFER_OPS))
    .argument('[host]', 'the server to connect to; leave it out to be the server');
  addPerftestFlags(command, tool)
    .option(
      '--bind <address>',
      'IP address of this endpoint (default: 127.0.0.1; client: from the routing table)',
      addressOption,
    )
    .addOption(
      frameOption(
        'connect to this port of a rocev2 switch; --bind is the address there; options: link rate (default: 10Gbps), and DSCP=PRIORITY as in the switch',
      ),
    )
    .option(
      '--total-timeout <code>',
      'longest silence of the peer, coded as for --timeout; 0: as long as --timeout and --retry-cnt allow (default: 22, which is 17 s; 0 with these options or --perftest)',
      rangeOption(0, 31),
    );
  addFaultsOption(command, 'fault rules on this endpoint, e.g. random=0.001 or every=256 (docs/faults.md)', [
    '--loss',
  ]).option('--seed <n>', 'seed for random fault rules', countOption);
  addNetworkOptions(command, (group) =>
    group.option(
      '--udp-port <port>',
      'UDP port of this endpoint, for hosts with one address; 0: the system chooses (default: 4791)',
      portOrAnyOption,
    ),
  );
  if (tool === 'bw') command.option('-i, --interval <time>', 'print a line at this interval', secondsOption);
  addNicOptions(command)
    .option(
      '--warm-up <time>',
      'send messages to this endpoint itself for this time first, at most 60s, so that V8 compiles the code that is measured; the counters include them',
      secondsUpToOption(WARM_UP_MS_MAX / 1000),
    )
    .option('--pcap <file>', 'capture the packets of this endpoint to a pcapng file')
    .option('--estats', "collect telemetry for 'rocev2 estats' (packages/dashboard/docs/estats.md)")
    .option(
      '--estats-http <host:port>',
      'collect telemetry, and serve /metrics (Prometheus) and /estats.json at this address',
    )
    .addOption(allowHostOption())
    .option(
      '--trace <file>',
      'trace packets, losses, timeouts and rates of this endpoint as JSON lines (docs/events.md)',
    )
    .option(
      '--perftest',
      `the peer is the stock ib_write_${tool}, ib_read_${tool}, ib_send_${tool} or ib_atomic_${tool}`,
    )
    .option('--json', 'print one JSON document')
    .addHelpText('after', `\n${acceptedFlagsText()}`);
  addRecoveryOptions(command);
  addRateControlOptions(command);
  addSecureOptions(command);
  return addExtensionOption(command);
}

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
      'a WRITE latency test needs messages of at least 1 byte',
      'the receiver waits for the last byte to change',
    );
  }
  const { reason } = chooseIo(options.io);
  if (reason !== undefined) output.note(`packets go through node:dgram, without batches and ECN: ${reason}`);
  if (host === undefined) await runServer(tool, op, options, output);
  else await runClient(tool, op, await resolveHost(host), options, output);
}

export interface TypedTransfer {
  readonly tool: TransferTool;
  readonly op: TransferOp;
  readonly host: string | undefined;
  readonly options: WrittenTransferOptions;
}

export async function transferAction(typed: TypedTransfer, command: Command, io: CliIo): Promise<void> {
  const { tool, op, host, options: given } = typed;
  const output = new Output(io, given.json === true);
  const notes = perftestFlagNotes(command);
  const options = consistentOptions(op, optionsForTransport(op, given, command), command);
  // A server uses the client's options. Its own are checked nevertheless, before it waits for a client.
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
    const printer = resultPrinter(output, tool.table, options);
    const results = await measureSizes({ tool, options, output }, endpoint, printer.add);
    printer.end();
    const result = results.at(-1)!;
    output.document(tool.document, documentOf('client', results, endpoint.plan.allSizes));
    const moved = results.some(({ iterations }) => iterations > 0);
    if (!moved && result.lost !== 0 && !interrupted.aborted)
      throw new CommandFailure(EXIT_FAILED, `all of the ${result.lost} messages were lost`);
    if (!results.every(({ verified, iterations }) => verified || iterations === 0))
      throw new CommandFailure(EXIT_VERIFICATION_FAILED, 'the received data differs from the data sent');
    output.throwIfInterrupted();
    expectLimits(result, options);
  } finally {
    await endpoint.close();
  }
}

async function measureSizes(
  context: RoundContext,
  endpoint: Endpoint,
  onResult: (result: TransferResult) => void,
): Promise<TransferResult[]> {
  const { tool, options, output } = context;
  const { interrupted } = output.io;
  const serve = endpoint.plan.bidirectional ? tool.answer(endpoint, options) : undefined;
  const sizes = sizesOf(endpoint.plan);
  const results: TransferResult[] = [];
  for (const size of sizes) {
    const round = beginRound(endpoint, size);
    const playing = roundAsClient(context, round, serve, size === sizes.at(-1));
    const result = resultOf(options, await endingWithFigures(playing, output.io));
    results.push(result);
    onResult(result);
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
    onRefusedPeer: (peer, why) => output.note(`${peer} was not the client: ${why}`),
  });
  try {
    printHead(output, endpoint, tool.title);
    prepare(endpoint, 'server');
    const serve = tool.answer(endpoint, options);
    const rounds = roundsAsServer({ tool, options, output }, endpoint, sizesOf(endpoint.plan), serve);
    const served = await output.during(`serving ${endpoint.flows[0].agreement.peer}`, rounds);
    if (served === undefined) throw new CommandFailure(EXIT_INTERRUPTED);
    const verified = served.every((round) => round.verified || round.iterations === 0);
    const hasData = served.some(({ iterations }) => iterations > 0);
    const sound = hasData ? ' data verified by the client' : ' no message was completed';
    output.line(verified ? sound : ' the client found wrong data');
    output.document(tool.document, documentOf('server', served, endpoint.plan.allSizes));
    if (!verified) throw new CommandFailure(EXIT_VERIFICATION_FAILED);
  } finally {
    await endpoint.close();
  }
}
