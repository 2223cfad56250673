/** Several connections of RDMA CM at once, as `ucmatose`, `cmtime` and `udaddy` (rdma-core, librdmacm/examples) make them: options, device, both roles. */

import {
  addressOption,
  CommandFailure,
  EXIT_INTERRUPTED,
  endingInTime,
  localAddressTowards,
  type Output,
  portOption,
  rangeOption,
  whileListening,
} from '@rocev2/command';
import type { Command } from 'commander';
import {
  acceptConcurrently,
  type CmConnection,
  ConnectionManager,
  type Established,
  type SetUpEnd,
} from 'rocev2/internal/cm';
import type { IpAddress } from 'rocev2/internal/packet';
import { openDevice, type RdmaDevice } from 'rocev2/internal/verbs';

const DEFAULT_PORT = 7471;
const CONNECTIONS_MAX = 1024;
const LOOPBACK = '127.0.0.1';

/** The options of all commands that make several connections. */
export interface ManyConnectionsOptions {
  /** The server; undefined: this side is the server. */
  readonly server?: IpAddress;
  /** RoCE address of this side. */
  readonly bind?: IpAddress;
  /** Port in RDMA_PS_TCP; for udaddy, in RDMA_PS_UDP. */
  readonly port: number;
  /** Number of connections. */
  readonly connections: number;
  /** Print one JSON document. */
  readonly json?: boolean;
}

/** Adds the options, in the spelling of the stock tools. `port` is the default port of the stock tool. */
export function addManyConnectionsOptions(command: Command, port: number = DEFAULT_PORT): Command {
  return command
    .option('-s, --server <address>', 'the server to connect to; leave it out to be the server', addressOption)
    .option(
      '-b, --bind <address>',
      `RoCE address of this side (default: ${LOOPBACK}; client: from the routing table)`,
      addressOption,
    )
    .option('-p, --port <port>', 'rdma_cm port', portOption, port)
    .option('-c, --connections <n>', 'simultaneous connections', rangeOption(1, CONNECTIONS_MAX), 1);
}

/** Opens NIC and connection manager, and runs `work` until it ends or Ctrl-C. */
export async function withManager<T>(
  { server, bind, connections }: ManyConnectionsOptions,
  output: Output,
  work: (cm: ConnectionManager) => Promise<T>,
): Promise<T> {
  const { interrupted } = output.io;
  const local = bind?.text ?? (server === undefined ? LOOPBACK : (await localAddressTowards(server)).text);
  await using device = await openDevice({ address: local });
  // One peer may request all connections at once.
  const limits = { halfOpen: 2 * connections, halfOpenPerAddress: connections + 1 };
  await using cm = await ConnectionManager.open(device, { limits });
  const result = await endingInTime(work(cm), interrupted).catch((error) => {
    throw interrupted.aborted ? new CommandFailure(EXIT_INTERRUPTED) : error;
  });
  if (interrupted.aborted) throw new CommandFailure(EXIT_INTERRUPTED);
  return result;
}

/** The server's part: waits for all connections. */
export function acceptAll<E extends SetUpEnd>(
  cm: ConnectionManager,
  { port, connections }: ManyConnectionsOptions,
  makeEnd: (device: RdmaDevice) => Promise<E>,
  output: Output,
): Promise<Array<Established<E>>> {
  return whileListening(cm, cm.listen(port), output, (listener) =>
    acceptConcurrently(listener, connections, {
      makeEnd: () => makeEnd(cm.device),
      responderResources: 1,
      initiatorDepth: 1,
    }),
  );
}

/** The client's part, for one connection. */
export function connectTo<E extends SetUpEnd>(
  cm: ConnectionManager,
  { server, port }: ManyConnectionsOptions,
  end: E,
  output: Output,
): Promise<CmConnection> {
  return cm.connect(server!, port, end.qp, {
    responderResources: 1,
    initiatorDepth: 1,
    signal: output.io.interrupted,
  });
}
