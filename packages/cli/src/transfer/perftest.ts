/**
 * `rocev2 bw|lat --perftest`: the peer of the stock ib_write_bw, ib_read_lat and so on. perftest does not fill or check
 * its buffers, so only the total of the atomics can be verified.
 */

import { CommandFailure, EXIT_FAILED, endingInTime, endingWithFigures, type Output } from '@rocev2/command';
import { TRANSPORTS } from 'rocev2/internal/cm';
import { RoceError } from 'rocev2/internal/core';
import { ATOMIC_BYTES } from 'rocev2/internal/packet';
import { STANDARD_RECOVERY } from 'rocev2/internal/retransmit';
import { PERFTEST_TOOLS } from 'rocev2/internal/stock-exchanges';
import type { MemoryRegion } from 'rocev2/internal/verbs';
import { expectTransport } from '../peer-transport.js';
import { cpuLoad } from './cpu-load.js';
import { clientPort, openEndpointDevice, type TransferOp } from './endpoint.js';
import { measuredOf } from './figures.js';
import { connectFlows } from './perftest-flows.js';
import { type Conversation, meetOverTcp, meetThroughManager, type PerftestMeeting } from './perftest-meeting.js';
import { type PerftestOutcome, runSizes } from './perftest-rounds.js';
import {
  documentOf,
  expectLimits,
  resultOf,
  resultPrinter,
  type TransferDocument,
  type TransferResult,
} from './result.js';
import type { TransferTool } from './tool.js';
import type { TransferOptions } from './transfer-options.js';
import { postReceives } from './transfer-round.js';

export async function runPerftest(
  tool: TransferTool,
  op: TransferOp,
  host: string | undefined,
  options: TransferOptions,
  output: Output,
): Promise<void> {
  if (options.recovery !== STANDARD_RECOVERY) {
    throw new RoceError(
      'ERR_ROCE_UNSUPPORTED',
      `perftest does not support ${options.recovery}`,
      `it recovers with ${STANDARD_RECOVERY}`,
    );
  }
  const port = host === undefined ? { address: options.bind?.text ?? '127.0.0.1' } : await clientPort(host, options);
  const { interrupted } = output.io;
  const device = await openEndpointDevice(port, options, interrupted);
  let meeting: PerftestMeeting | undefined;
  try {
    const meet = options.rdmaCm === true ? meetThroughManager : meetOverTcp;
    const flags = options.transport === 'rc' ? '' : ` -c ${options.transport.toUpperCase()}`;
    const met = await endingInTime(meet(device, `ib_${op}_${tool.name}${flags}`, host, options, output), interrupted);
    meeting = met;
    const { exchange } = met;
    const role = host === undefined ? 'server' : 'client';
    const talk = converse({ tool: tool.name, op, role, device, meeting: met, exchange, options, output });
    const watched = role === 'server' && !options.bidirectional ? output.during('serving the client', talk) : talk;
    const results = await endingWithFigures(watched, output.io);
    const printer = resultPrinter(output, tool.table, options);
    for (const each of results) printer.add(each);
    printer.end();
    output.line(' perftest does not fill or check its buffers');
    const result = results.at(-1)!;
    output.document(tool.document, documentOf(role, results, options.all === true, unknownFields(role, result)));
    output.throwIfInterrupted();
    if (result.unfinished !== undefined) throw new CommandFailure(EXIT_FAILED, result.unfinished);
    expectLimits(result, options);
  } finally {
    await meeting?.close();
    await device.close();
  }
}

type PerftestResult = TransferResult & { readonly unfinished?: string };

async function converse(conversation: Conversation): Promise<PerftestResult[]> {
  const { role, op, tool, device, exchange, options } = conversation;
  const traffic = await connectFlows(conversation);
  if (role === 'server' || traffic.plan.bidirectional) postReceives(traffic);
  const { barriers, barrierEachSize } = PERFTEST_TOOLS[`${op}_${tool}`];
  return expectTransport(
    device,
    options.transport,
    async () => {
      const load = cpuLoad();
      const before = traffic.flows.length + barriers - (barrierEachSize ? 1 : 0);
      for (let i = 0; i < before; i++) await exchange.barrier();
      const outcomes = await runSizes(conversation, traffic);
      const cpuPercent = load();
      return outcomes.map((outcome) => perftestResult(conversation, outcome, cpuPercent));
    },
    TRANSPORTS.filter((other) => other !== options.transport && (op === 'send' || other !== 'ud')),
  );
}

/** Every atomic of the peer adds 1, somewhere in a flow's area. */
function sumOf(region: MemoryRegion): bigint {
  let sum = 0n;
  for (let offset = 0; offset < region.length; offset += ATOMIC_BYTES) sum += region.bytes.readBigUInt64LE(offset);
  return sum;
}

function perftestResult(
  { op, role, options }: Conversation,
  { round, tally, returned, unfinished }: PerftestOutcome,
  cpuPercent: number,
): PerftestResult {
  const { plan, region } = round;
  const measured = measuredOf(plan, tally, returned);
  const isCounted = op === 'atomic' && role === 'server' && !plan.bidirectional;
  const verified = isCounted && sumOf(region) === BigInt(measured.iterations);
  const { intervals = [] } = tally;
  return {
    ...resultOf(options, { round, measured, intervals, verified, cpuPercent }),
    ...(unfinished !== undefined && { unfinished }),
  };
}

/**
 * perftest does not send the client's latencies and peak to the server, and tells neither side what was lost or whether
 * the data is correct.
 */
function unknownFields(role: 'client' | 'server', result: TransferResult): TransferDocument['unknown'] {
  const unknown: Array<keyof TransferResult> = [];
  if (!result.verified) unknown.push('verified');
  if (role === 'server' && !result.bidirectional) unknown.push('latencyNs', 'peakBps');
  if (result.lost === null) unknown.push('lost');
  return unknown;
}
