/**
 * `rocev2 ucmatose`: a peer of ucmatose (rdma-core, librdmacm/examples/cmatose.c). Connections over rdma_cm, side by side; the server sends
 * its messages on each, the client has all of them and answers with as many, and the server ends the connections.
 */

import type { Command } from 'commander';
import type { CmConnection } from '../../cm/cm-connection.js';
import type { ConnectionManager } from '../../cm/connection-manager.js';
import type { RoceError } from '../../core/errors.js';
import { NS_PER_S } from '../../core/units.js';
import { nowNs } from '../../driver/system-clock.js';
import { rangeOption, sizeOption } from '../options.js';
import { type CliIo, Output } from '../output.js';
import { linger, watched } from '../peer-watch.js';
import {
  acceptAll,
  addManyConnectionsOptions,
  connectTo,
  type ManyConnectionsOptions,
  withManager,
} from '../rdma-cm/many-connections.js';
import { MessageEnd } from '../rdma-cm/message-end.js';

const DEFAULT_COUNT = 10;
const DEFAULT_SIZE_BYTES = 100;
const COUNT_MAX = 4096;

interface UcmatoseOptions extends ManyConnectionsOptions {
  readonly count: number;
  readonly size: number;
}

/** Adds `rocev2 ucmatose` to `program`. */
export function register(program: Command, io: CliIo): void {
  const command = program
    .command('ucmatose')
    .description('Connect over rdma_cm and send messages both ways. The peer is ucmatose or another rocev2 ucmatose.');
  addManyConnectionsOptions(command)
    .option(
      '-C, --count <n>',
      'messages each way on each connection, 0 for none',
      rangeOption(0, COUNT_MAX),
      DEFAULT_COUNT,
    )
    .option('-S, --size <size>', 'message size', sizeOption, DEFAULT_SIZE_BYTES)
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
-c, -C and -S must be the same on both sides.

Examples:
  rocev2 ucmatose -b 127.0.0.2
  rocev2 ucmatose -s 127.0.0.2 -b 127.0.0.1 -c 16
  rocev2 ucmatose -s 192.0.2.7 -C 100 -S 1KiB            # the server runs: ucmatose -C 100 -S 1024`,
    )
    .action((options: UcmatoseOptions) => ucmatose(options, new Output(io, options.json === true)));
}

async function ucmatose(options: UcmatoseOptions, output: Output): Promise<void> {
  const { connections, count, size } = options;
  const isServer = options.server === undefined;
  const { peer, seconds } = await withManager(options, output, async (cm) => {
    const ends = await (isServer ? accept(cm, options, output) : connect(cm, options, output));
    const startNs = nowNs();
    await watched(cm.device, output.io.interrupted, (alive) => exchange(ends, isServer, alive));
    return { peer: ends[0].connection.remote, seconds: (nowNs() - startNs) / NS_PER_S };
  });
  const messages = `${count} messages of ${size} bytes each way`;
  output.line(
    `${connections} connection${connections === 1 ? '' : 's'}, ${messages}, in ${seconds.toFixed(2)} seconds`,
  );
  output.document('ucmatose', {
    role: isServer ? 'server' : 'client',
    peer: peer.text,
    connections,
    iterations: count,
    sizeBytes: size,
    seconds,
  });
}

interface Connected {
  readonly connection: CmConnection;
  readonly end: MessageEnd;
}

function endOf(cm: ConnectionManager, { count, size }: UcmatoseOptions): Promise<MessageEnd> {
  return MessageEnd.create(cm.device, { count, sizeBytes: size });
}

function accept(cm: ConnectionManager, options: UcmatoseOptions, output: Output): Promise<Connected[]> {
  return acceptAll(cm, options, () => endOf(cm, options), output);
}

function connect(cm: ConnectionManager, options: UcmatoseOptions, output: Output): Promise<Connected[]> {
  const one = async () => {
    const end = await endOf(cm, options);
    return { end, connection: await connectTo(cm, options, end, output) };
  };
  return Promise.all(Array.from({ length: options.connections }, one));
}

/** The messages both ways, and the end of the connections, which is the server's word. */
async function exchange(ends: readonly Connected[], isServer: boolean, alive: () => void): Promise<void> {
  const all = (work: (connected: Connected) => Promise<void>) => Promise.all(ends.map(work));
  if (isServer) {
    for (const { end } of ends) end.send();
    await all(({ end }) => end.received(alive));
    await linger(); // The client's last message may be asked about again.
    await all(({ connection }) => connection.disconnect());
    return;
  }
  await all(({ end }) => end.received(alive));
  for (const { end } of ends) end.send();
  await all(({ end }) => end.sent(alive).catch(unlessHungUp));
  await all(({ connection }) => connection.disconnected);
}

/** A server that hangs up has all it waits for: its DREQ may overtake its last ACK. */
function unlessHungUp(error: RoceError): void {
  if (error.code !== 'ERR_ROCE_CONNECT') throw error;
}
