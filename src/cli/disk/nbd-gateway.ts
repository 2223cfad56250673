/** `rocev2 disk nbd`: serves one disk, ours or a storage server's, to NBD clients until Ctrl-C. */

import { RoceError } from '../../core/errors.js';
import { formatBytes, NS_PER_S } from '../../core/units.js';
import { nowNs } from '../../driver/system-clock.js';
import type { BlockDevice } from '../../storage-rpc/disk/block-device.js';
import type { StorageClient } from '../../storage-rpc/live/storage-client.js';
import { NbdServer } from '../../storage-rpc/nbd/server.js';
import type { SocketAddress } from '../../storage-rpc/nbd/socket-address.js';
import { openBackend } from '../../storage-rpc/open-backend.js';
import { untilInterrupted } from '../interruption.js';
import type { Output } from '../output.js';
import { ConnectedDisk, type RemoteDiskOptions } from './remote-disk.js';
import { type DiskFacts, diskTelemetry } from './telemetry.js';

/** Options of `rocev2 disk nbd`. */
export interface NbdGatewayOptions extends RemoteDiskOptions {
  /** Where NBD clients come to. */
  readonly listen: SocketAddress;
  /** The disk itself; either this or `connect`. */
  readonly backend?: string;
  /** The storage server's host; either this or `backend`. */
  readonly connect?: string;
  /** Bytes of a backend that is to be made. */
  readonly size?: number;
  /** Name of the export. */
  readonly export: string;
}

/** Breaks the RDMA connections, to see what a failing NIC would do. Node keeps SIGUSR1 for its debugger. */
const FAILOVER_SIGNAL = 'SIGUSR2';

/** Ends well when it is interrupted: that is how a server ends. */
export async function runNbdGateway(options: NbdGatewayOptions, output: Output): Promise<void> {
  const { backend, connect, size } = options;
  if ((backend === undefined) === (connect === undefined)) {
    throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', 'say where the disk is', 'one of --backend and --connect');
  }
  if (backend !== undefined) {
    await using device = await openBackend(backend, size);
    await serveNbd({ device, where: backend }, options, output);
    return;
  }
  await using remote = await ConnectedDisk.connect(connect!, options);
  const { client, device } = remote;
  if (device !== undefined) output.note(`RDMA by ${device.portDescription}`);
  const failover = (): void => {
    const { rdma } = client.report.sessions;
    output.note(rdma === 0 ? 'there is no RDMA to break now' : 'RDMA is broken on request');
    client.failover();
  };
  process.on(FAILOVER_SIGNAL, failover);
  try {
    await serveNbd({ device: client.disk, where: `${connect} port ${options.port}`, client }, options, output);
  } finally {
    process.off(FAILOVER_SIGNAL, failover);
  }
}

/** What is served. */
interface Store {
  readonly device: BlockDevice;
  readonly where: string;
  /** Of a disk of a storage server. */
  readonly client?: StorageClient;
}

async function serveNbd(
  { device, where, client }: Store,
  { listen, export: exportName, estats }: NbdGatewayOptions,
  output: Output,
): Promise<void> {
  const description = `${formatBytes(device.sizeBytes)} of ${where}`;
  const telemetry = diskTelemetry(device, estats === true);
  await using server = await NbdServer.open({ listen, exportName, description, device: telemetry.disk });
  await using _socket = await telemetry.serve(() => ({
    role: 'gateway',
    address: 'path' in listen ? `unix:${listen.path}` : server.uri,
    store: where,
    nbdClients: server.clients,
    ...clientFacts(client),
  }));
  const startNs = nowNs();
  const { uri } = server;
  output.note(`serving ${description} at ${uri}`);
  output.note('Ctrl-C ends it');
  await untilInterrupted(output.io.interrupted);
  const seconds = (nowNs() - startNs) / NS_PER_S;
  await server.close();
  const { connections, requests, bytesRead, bytesWritten } = server.counters;
  output.line(
    `${connections} connections, ${requests} requests, ${formatBytes(bytesRead)} read, ${formatBytes(bytesWritten)} written`,
  );
  output.document('disk-nbd', {
    uri,
    sizeBytes: device.sizeBytes,
    seconds,
    ...server.counters,
    ...(client !== undefined && { storage: client.report }),
  });
}

function clientFacts(client: StorageClient | undefined): Pick<DiskFacts, 'connections' | 'crcMismatches' | 'path'> {
  if (client === undefined) return { connections: { rdma: 0, tcp: 0 }, crcMismatches: 0, path: null };
  const { state, sessions, failovers, moves, resentRequests, crcMismatches, serverRestarts } = client.report;
  return { connections: sessions, crcMismatches, path: { state, failovers, moves, resentRequests, serverRestarts } };
}
