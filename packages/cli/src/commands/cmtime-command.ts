/**
 * `rocev2 cmtime`: a peer of cmtime (rdma-core, librdmacm/examples/cmtime.c), which measures how long connections of
 * rdma_cm take.
 */

import { type CliIo, counted, defineDocument, type Output, printing } from '@rocev2/command';
import type { Command } from 'commander';
import type { CmConnection, ConnectionManager } from 'rocev2/internal/cm';
import { NS_PER_MS, NS_PER_US } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import {
  acceptAll,
  addManyConnectionsOptions,
  connectTo,
  type ManyConnectionsOptions,
  withManager,
} from '../rdma-cm/many-connections.js';
import { MessageEnd } from '../rdma-cm/message-end.js';

/** The fields of `cmtime --json`. */
interface CmtimeResult {
  /** Role of this side. */
  readonly role: 'client' | 'server';
  /** IP address of the peer. */
  readonly peer: string;
  /** Number of simultaneous connections. */
  readonly connections: number;
  /** The steps in order; empty on the server, which does not measure. */
  readonly steps: readonly CmtimeStep[];
}

/** One step, which all connections take at the same time. */
interface CmtimeStep {
  /** Name of the step: `create qp`, `connect`, `disconnect`, `destroy`. */
  readonly name: string;
  /** Time from the start of the step until the last connection has done it, in nanoseconds. */
  readonly totalNs: number;
  /** Time of the fastest connection. */
  readonly minNs: number;
  /** Time of the slowest connection. */
  readonly maxNs: number;
}

const CMTIME_DOCUMENT = defineDocument<CmtimeResult>('cmtime');

const NO_MESSAGES = { count: 0, sizeBytes: 0 };

export function register(program: Command, io: CliIo): void {
  const command = program
    .command('cmtime')
    .description('Measure the time of connection setup over rdma_cm. The peer is cmtime or another rocev2 cmtime.');
  addManyConnectionsOptions(command)
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
The server ends after the number of connections that -c gives. For each step,
the client prints the time for all connections together, and for the fastest and
the slowest connection.

Examples:
  rocev2 cmtime -b 127.0.0.2 -c 100
  rocev2 cmtime -s 127.0.0.2 -b 127.0.0.1 -c 100
  rocev2 cmtime -s 192.0.2.7 -c 100                      # the server runs: cmtime`,
    )
    .action(printing(io, cmtime));
}

async function cmtime(options: ManyConnectionsOptions, output: Output): Promise<void> {
  const isServer = options.server === undefined;
  const { peer, steps } = await withManager(options, output, (cm) => (isServer ? serve : measure)(cm, options, output));
  const { connections } = options;
  if (isServer) output.line(`${counted(connections, 'connection')} from ${peer}`);
  else print(steps, connections, output);
  output.document(CMTIME_DOCUMENT, { role: isServer ? 'server' : 'client', peer, connections, steps });
}

interface Outcome {
  readonly peer: string;
  readonly steps: readonly CmtimeStep[];
}

async function serve(cm: ConnectionManager, options: ManyConnectionsOptions, output: Output): Promise<Outcome> {
  const all = await acceptAll(cm, options, (device) => MessageEnd.create(device, NO_MESSAGES), output);
  await Promise.all(all.map(({ connection }) => connection.disconnected));
  return { peer: all[0].connection.remote.text, steps: [] };
}

async function measure(cm: ConnectionManager, options: ManyConnectionsOptions, output: Output): Promise<Outcome> {
  const steps: CmtimeStep[] = [];
  const step = async <A, B>(name: string, items: readonly A[], work: (item: A) => Promise<B>): Promise<B[]> => {
    const startNs = nowNs();
    const each: number[] = [];
    const results = await Promise.all(
      items.map(async (item) => {
        const result = await work(item);
        each.push(nowNs() - startNs);
        return result;
      }),
    );
    steps.push({ name, totalNs: nowNs() - startNs, minNs: Math.min(...each), maxNs: Math.max(...each) });
    return results;
  };
  const positions = Array.from({ length: options.connections }, (_, place) => place);
  const ends = await step('create qp', positions, () => MessageEnd.create(cm.device, NO_MESSAGES));
  const connections: CmConnection[] = await step('connect', ends, (end) => connectTo(cm, options, end, output));
  await step('disconnect', connections, (connection) => connection.disconnect());
  await step('destroy', ends, (end) => end.close());
  return { peer: connections[0].remote.text, steps };
}

function print(steps: readonly CmtimeStep[], connections: number, output: Output): void {
  const number = (value: number, width: number) => value.toFixed(2).padStart(width);
  output.line('step              total ms     max ms     min us  us / conn');
  for (const { name, totalNs, minNs, maxNs } of steps) {
    const columns = [
      number(totalNs / NS_PER_MS, 11),
      number(maxNs / NS_PER_MS, 11),
      number(minNs / NS_PER_US, 11),
      number(totalNs / NS_PER_US / connections, 11),
    ];
    output.line(`${name.padEnd(13)}: ${columns.join('')}`);
  }
}
