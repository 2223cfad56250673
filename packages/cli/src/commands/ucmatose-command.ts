/** `rocev2 ucmatose`: a peer of ucmatose (rdma-core, librdmacm/examples/cmatose.c). */

import { type CliIo, defineDocument, linger, type Output, printing, watched } from '@rocev2/command';
import type { Command } from 'commander';
import type { CmConnection, ConnectionManager } from 'rocev2/internal/cm';
import { NS_PER_S, type RoceError } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import { addBothWaysOptions, type BothWaysOptions, reportBothWays } from '../rdma-cm/both-ways.js';
import { acceptAll, addManyConnectionsOptions, connectTo, withManager } from '../rdma-cm/many-connections.js';
import { MessageEnd } from '../rdma-cm/message-end.js';

/** The fields of `ucmatose --json`. */
interface UcmatoseResult {
  /** Role of this side. */
  readonly role: 'client' | 'server';
  /** IP address of the peer. */
  readonly peer: string;
  /** Number of simultaneous connections. */
  readonly connections: number;
  /** Messages each way on each connection. */
  readonly iterations: number;
  /** Size of a message in bytes. */
  readonly sizeBytes: number;
  /** Time from the first message to the end of the last connection. */
  readonly seconds: number;
}

const UCMATOSE_DOCUMENT = defineDocument<UcmatoseResult>('ucmatose');

export function register(program: Command, io: CliIo): void {
  const command = program
    .command('ucmatose')
    .description('Connect over rdma_cm and send messages both ways. The peer is ucmatose or another rocev2 ucmatose.');
  addBothWaysOptions(addManyConnectionsOptions(command), {
    count: 'messages each way on each connection; 0: none',
    size: 'message size',
  })
    .addHelpText(
      'after',
      `
-c, -C and -S must be the same on both sides.

Examples:
  rocev2 ucmatose -b 127.0.0.2
  rocev2 ucmatose -s 127.0.0.2 -b 127.0.0.1 -c 16
  rocev2 ucmatose -s 192.0.2.7 -C 100 -S 1KiB            # the server runs: ucmatose -C 100 -S 1024`,
    )
    .action(printing(io, ucmatose));
}

async function ucmatose(options: BothWaysOptions, output: Output): Promise<void> {
  const isServer = options.server === undefined;
  const outcome = await withManager(options, output, async (cm) => {
    const ends = await (isServer ? accept(cm, options, output) : connect(cm, options, output));
    const startNs = nowNs();
    await watched(cm.device, output.io.interrupted, (alive) => exchange(ends, isServer, alive));
    return { peer: ends[0].connection.remote, seconds: (nowNs() - startNs) / NS_PER_S };
  });
  output.document(UCMATOSE_DOCUMENT, reportBothWays('messages', options, outcome, output));
}

interface Connected {
  readonly connection: CmConnection;
  readonly end: MessageEnd;
}

function endOf(cm: ConnectionManager, { count, size }: BothWaysOptions): Promise<MessageEnd> {
  return MessageEnd.create(cm.device, { count, sizeBytes: size });
}

function accept(cm: ConnectionManager, options: BothWaysOptions, output: Output): Promise<Connected[]> {
  return acceptAll(cm, options, () => endOf(cm, options), output);
}

function connect(cm: ConnectionManager, options: BothWaysOptions, output: Output): Promise<Connected[]> {
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
    await linger(); // The client's last message may still be retransmitted.
    await all(({ connection }) => connection.disconnect());
    return;
  }
  await all(({ end }) => end.received(alive));
  for (const { end } of ends) end.send();
  await all(({ end }) => end.sent(alive).catch(unlessHungUp));
  await all(({ connection }) => connection.disconnected);
}

/** The server's DREQ may overtake its last ACK. */
function unlessHungUp(error: RoceError): void {
  if (error.code !== 'ERR_ROCE_CONNECT') throw error;
}
