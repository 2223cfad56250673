/**
 * `rocev2 udaddy`: a peer of udaddy (rdma-core, librdmacm/examples/udaddy.c). Nothing is acknowledged or retransmitted.
 */

import {
  type CliIo,
  CommandFailure,
  defineDocument,
  EXIT_FAILED,
  type Output,
  printing,
  watched,
  whileListening,
} from '@rocev2/command';
import type { Command } from 'commander';
import {
  type CmListener,
  type ConnectionManager,
  type DatagramRequest,
  type DatagramService,
  UDP_QKEY,
} from 'rocev2/internal/cm';
import { NS_PER_S, RoceError } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import {
  addBothWaysOptions,
  type BothWaysOptions,
  type BothWaysOutcome,
  reportBothWays,
} from '../rdma-cm/both-ways.js';
import { DatagramEnd } from '../rdma-cm/datagram-end.js';
import { DatagramPeers } from '../rdma-cm/datagram-peers.js';
import { addManyConnectionsOptions, withManager } from '../rdma-cm/many-connections.js';
import { checkDatagramSize } from '../transfer/endpoint.js';

/** The fields of `udaddy --json`. */
interface UdaddyResult {
  /** This side. */
  readonly role: 'client' | 'server';
  /** IP address of the other side; of several, the one that came first. */
  readonly peer: string;
  /** Clients of the server, or queue pairs of the client. */
  readonly connections: number;
  /** Datagrams each way on each connection. */
  readonly iterations: number;
  /** Bytes of a datagram. */
  readonly sizeBytes: number;
  /** From the first datagram to the last. */
  readonly seconds: number;
}

const UDADDY_DOCUMENT = defineDocument<UdaddyResult>('udaddy');

const DEFAULT_PORT = 7174;
/** All datagrams of all clients may arrive at once, and one without a posted receive is lost. */
const RECEIVES_MAX = 16_384;
const LOST_AFTER_MS = 10_000;

export function register(program: Command, io: CliIo): void {
  const command = program
    .command('udaddy')
    .description(
      'Find a queue pair through rdma_cm and exchange datagrams with udaddy, or with another rocev2 udaddy.',
    );
  addBothWaysOptions(addManyConnectionsOptions(command, DEFAULT_PORT), {
    count: 'datagrams each way on each connection; 0: none',
    size: 'size of a datagram, at most the path MTU',
  })
    .addHelpText(
      'after',
      `
Connections, number and size of the datagrams must be the same on both sides.
Datagrams are not repeated: one that is lost ends the run after ${LOST_AFTER_MS / 1000} s.
-p is the port; -p of the stock udaddy is the port space.

Examples:
  rocev2 udaddy -b 127.0.0.2
  rocev2 udaddy -s 127.0.0.2 -b 127.0.0.1 -c 4
  rocev2 udaddy -s 192.0.2.7 -C 100 -S 1KiB              # the server runs: udaddy -C 100 -S 1024`,
    )
    .action(printing(io, udaddy));
}

async function udaddy(options: BothWaysOptions, output: Output): Promise<void> {
  const { connections, count, size } = options;
  if (connections * count > RECEIVES_MAX) {
    throw new RoceError(
      'ERR_ROCE_OUT_OF_RANGE',
      `${connections} connections with ${count} datagrams each are ${connections * count}`,
      `-c times -C is at most ${RECEIVES_MAX}`,
    );
  }
  const isServer = options.server === undefined;
  const outcome = await withManager(options, output, async (cm) => {
    checkDatagramSize(size, cm.device.attributes.pathMtuMax, '-S');
    return (isServer ? serve : ask)(cm, options, output);
  });
  output.document(UDADDY_DOCUMENT, reportBothWays('datagrams', options, outcome, output));
}

function lost(progress: () => string, ends: readonly DatagramEnd[]) {
  const failure = () => {
    const tooLong = ends.reduce((sum, end) => sum + end.tooLong, 0);
    const why = tooLong > 0 ? `; ${tooLong} more were longer than -S says` : '; datagrams are not repeated';
    return new CommandFailure(EXIT_FAILED, `nothing has come for ${LOST_AFTER_MS / 1000} s, after ${progress()}${why}`);
  };
  return { limitMs: LOST_AFTER_MS, failure };
}

async function serve(cm: ConnectionManager, options: BothWaysOptions, output: Output): Promise<BothWaysOutcome> {
  const { port, connections, count, size } = options;
  // One queue pair for all clients, so that forged or repeated requests have no extra cost.
  const end = await DatagramEnd.create(cm.device, size, connections * count);
  const peers = new DatagramPeers(connections, count);
  return whileListening(cm, cm.listenForDatagrams(port), output, async (listener) => {
    const accepting = acceptRequests(listener, end, peers);
    if (count === 0) {
      await accepting;
      return { peer: peers.firstAddress!, seconds: 0 };
    }
    void accepting.catch(() => {});
    await receiveFirst(end, peers);
    const startNs = nowNs();
    const silence = lost(() => `${peers.received} of ${connections * count} datagrams`, [end]);
    await watched(
      cm.device,
      output.io.interrupted,
      async (alive) => {
        while (!peers.isComplete) {
          peers.count(await end.next());
          alive();
        }
        for (const { source, qpn } of peers.complete()) {
          await using ah = await end.pd.createAh(source);
          await end.send(count, { ah, remoteQpn: qpn, remoteQkey: UDP_QKEY });
        }
      },
      silence,
    );
    return { peer: peers.firstAddress!, seconds: (nowNs() - startNs) / NS_PER_S };
  });
}

async function acceptRequests(
  listener: CmListener<DatagramRequest>,
  end: DatagramEnd,
  peers: DatagramPeers,
): Promise<void> {
  while (!peers.isComplete) {
    const request = await listener.next();
    peers.admit(request.remote);
    request.accept(end.qp);
  }
}

async function receiveFirst(end: DatagramEnd, peers: DatagramPeers): Promise<void> {
  while (peers.received === 0) peers.count(await end.next());
}

async function ask(cm: ConnectionManager, options: BothWaysOptions, output: Output): Promise<BothWaysOutcome> {
  const { server, port, connections, count, size } = options;
  const { interrupted } = output.io;
  const found = await Promise.all(
    Array.from({ length: connections }, async (): Promise<Found> => {
      const end = await DatagramEnd.create(cm.device, size, count);
      return { end, service: await cm.resolve(server!, port, end.pd, { signal: interrupted }) };
    }),
  );
  let received = 0;
  const silence = lost(
    () => `${received} of ${connections * count} datagrams`,
    found.map(({ end }) => end),
  );
  const startNs = nowNs();
  await watched(
    cm.device,
    interrupted,
    async (alive) => {
      for (const { end, service } of found) await end.send(count, service.destination);
      await Promise.all(
        found.map(async ({ end, service: { destination } }) => {
          for (let mine = 0; mine < count; ) {
            const { source, qpn } = await end.next();
            if (qpn !== destination.remoteQpn || !source.equals(server!)) continue;
            mine++;
            received++;
            alive();
          }
        }),
      );
    },
    silence,
  );
  return { peer: server!, seconds: (nowNs() - startNs) / NS_PER_S };
}

interface Found {
  readonly end: DatagramEnd;
  readonly service: DatagramService;
}
