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

export interface ManyConnectionsOptions {
  readonly server?: IpAddress;
  readonly bind?: IpAddress;
  readonly port: number;
  readonly connections: number;
}

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

export async function withManager<T>(
  { server, bind, connections }: ManyConnectionsOptions,
  output: Output,
  work: (cm: ConnectionManager) => Promise<T>,
): Promise<T> {
  const { interrupted } = output.io;
  const local = bind?.text ?? (server === undefined ? LOOPBACK : (await localAddressTowards(server)).text);
  await using device = await openDevice({ address: local });
  const limits = { halfOpen: 2 * connections, halfOpenPerAddress: connections + 1 };
  await using cm = await ConnectionManager.open(device, { limits });
  const result = await endingInTime(work(cm), interrupted).catch((error) => {
    throw interrupted.aborted ? new CommandFailure(EXIT_INTERRUPTED) : error;
  });
  output.throwIfInterrupted();
  return result;
}

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
