/**
 * `rocev2 udaddy`: a peer of udaddy (rdma-core, librdmacm/examples/udaddy.c). The client finds the server's queue pair through rdma_cm (SIDR) and
 * sends its datagrams; the server has all of them and answers each sender with as many. Nothing is acknowledged, and nothing is repeated.
 */

import type { Command } from 'commander';
import type { CmListener } from '../../cm/cm-listener.js';
import type { ConnectionManager } from '../../cm/connection-manager.js';
import type { DatagramRequest, DatagramService } from '../../cm/datagram-services.js';
import { UDP_QKEY } from '../../cm/ip-addressing.js';
import { RoceError } from '../../core/errors.js';
import { NS_PER_S } from '../../core/units.js';
import { nowNs } from '../../driver/system-clock.js';
import type { IpAddress } from '../../packet/address.js';
import { CommandFailure, EXIT_FAILED } from '../exit.js';
import { rangeOption, sizeOption } from '../options.js';
import { type CliIo, Output } from '../output.js';
import { watched } from '../peer-watch.js';
import { DatagramEnd } from '../rdma-cm/datagram-end.js';
import { DatagramPeers } from '../rdma-cm/datagram-peers.js';
import { addManyConnectionsOptions, type ManyConnectionsOptions, withManager } from '../rdma-cm/many-connections.js';
import { checkDatagramSize } from '../transfer/endpoint.js';

const DEFAULT_PORT = 7174;
const DEFAULT_COUNT = 10;
const DEFAULT_SIZE_BYTES = 100;
const COUNT_MAX = 4096;
/** Nobody waits for a receive to be posted: all datagrams of all clients may come at once. */
const RECEIVES_MAX = 16_384;
/** A datagram that has not come by then was lost. */
const LOST_AFTER_MS = 10_000;

interface UdaddyOptions extends ManyConnectionsOptions {
  readonly count: number;
  readonly size: number;
}

/** Adds `rocev2 udaddy` to `program`. */
export function register(program: Command, io: CliIo): void {
  const command = program
    .command('udaddy')
    .description(
      'Find a queue pair through rdma_cm and exchange datagrams with udaddy, or with another rocev2 udaddy.',
    );
  addManyConnectionsOptions(command, DEFAULT_PORT)
    .option(
      '-C, --count <n>',
      'datagrams each way on each connection; 0: none',
      rangeOption(0, COUNT_MAX),
      DEFAULT_COUNT,
    )
    .option('-S, --size <size>', 'size of a datagram, at most the path MTU', sizeOption, DEFAULT_SIZE_BYTES)
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
Connections, number and size of the datagrams must be the same on both sides.
Datagrams are not repeated: one that is lost ends the run after ${LOST_AFTER_MS / 1000} s.
-p is a port here; stock udaddy chooses a port space by it.

Examples:
  rocev2 udaddy -b 127.0.0.2
  rocev2 udaddy -s 127.0.0.2 -b 127.0.0.1 -c 4
  rocev2 udaddy -s 192.0.2.7 -C 100 -S 1KiB              # the server runs: udaddy -C 100 -S 1024`,
    )
    .action((options: UdaddyOptions) => udaddy(options, new Output(io, options.json === true)));
}

async function udaddy(options: UdaddyOptions, output: Output): Promise<void> {
  const { connections, count, size } = options;
  if (connections * count > RECEIVES_MAX) {
    throw new RoceError(
      'ERR_ROCE_OUT_OF_RANGE',
      `${connections} connections with ${count} datagrams each are ${connections * count}`,
      `-c times -C is at most ${RECEIVES_MAX}`,
    );
  }
  const isServer = options.server === undefined;
  const { peer, seconds } = await withManager(options, output, async (cm) => {
    checkDatagramSize(size, cm.device.attributes.pathMtuMax, '-S');
    return (isServer ? serve : ask)(cm, options, output);
  });
  const datagrams = `${count} datagrams of ${size} bytes each way`;
  output.line(
    `${connections} connection${connections === 1 ? '' : 's'}, ${datagrams}, in ${seconds.toFixed(2)} seconds`,
  );
  output.document('udaddy', {
    role: isServer ? 'server' : 'client',
    peer: peer.text,
    connections,
    iterations: count,
    sizeBytes: size,
    seconds,
  });
}

interface Outcome {
  readonly peer: IpAddress;
  readonly seconds: number;
}

/** What it means when nothing comes any more. */
function lost(progress: () => string, ends: readonly DatagramEnd[]) {
  const failure = () => {
    const tooLong = ends.reduce((sum, end) => sum + end.tooLong, 0);
    const why = tooLong > 0 ? `; ${tooLong} more were longer than -S says` : '; datagrams are not repeated';
    return new CommandFailure(EXIT_FAILED, `nothing has come for ${LOST_AFTER_MS / 1000} s, after ${progress()}${why}`);
  };
  return { limitMs: LOST_AFTER_MS, failure };
}

// ---- the server

async function serve(cm: ConnectionManager, options: UdaddyOptions, output: Output): Promise<Outcome> {
  const { port, connections, count, size } = options;
  const { interrupted } = output.io;
  // One queue pair for all clients: a request that is forged, or repeated, costs no other one.
  const end = await DatagramEnd.create(cm.device, size, connections * count);
  const peers = new DatagramPeers(connections, count);
  const listener = cm.listenForDatagrams(port);
  const stop = () => listener.close();
  interrupted.addEventListener('abort', stop, { once: true });
  output.note(`listening on ${cm.device.address} port ${port}`);
  try {
    const accepting = acceptRequests(listener, end, peers);
    if (count === 0) {
      await accepting;
      return { peer: peers.firstAddress!, seconds: 0 };
    }
    void accepting.catch(() => {}); // It ends with the listener.
    await receiveFirst(end, peers);
    const startNs = nowNs();
    const silence = lost(() => `${peers.received} of ${connections * count} datagrams`, [end]);
    await watched(
      cm.device,
      interrupted,
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
  } finally {
    interrupted.removeEventListener('abort', stop);
    listener.close();
  }
}

/** Tells every client of the queue pair. Without datagrams to come, the requests themselves are what is counted. */
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

/** Resolves when the first client that may send has sent: until then a server waits as long as it takes. */
async function receiveFirst(end: DatagramEnd, peers: DatagramPeers): Promise<void> {
  while (peers.received === 0) peers.count(await end.next());
}

// ---- the client

async function ask(cm: ConnectionManager, options: UdaddyOptions, output: Output): Promise<Outcome> {
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
