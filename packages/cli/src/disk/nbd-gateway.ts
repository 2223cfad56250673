import { DISK_CLOSING_MS, defineDocument, noDeviceForHttp, type Output, untilInterrupted } from '@rocev2/command';
import { isStreamBackend } from '@rocev2/extents/internal';
import { type BackendFlags, givenBackendOption, openOwnDisk } from '@rocev2/nvme/internal';
import { formatBytes, NS_PER_S, RoceError } from 'rocev2/internal/core';
import type { BlockDevice } from 'rocev2/internal/disk';
import { nowNs } from 'rocev2/internal/driver';
import { type NbdCounters, NbdServer, type SocketAddress } from 'rocev2/internal/nbd';
import type { StorageClient, StorageClientReport } from 'rocev2/internal/storage-rpc';
import { type LimitFlags, limitsOf } from './limit-options.js';
import { ConnectedDisk, type RemoteDiskOptions } from './remote-disk.js';
import { type DiskState, diskTelemetry } from './telemetry.js';
import { type TlsFlags, tlsOf } from './tls-options.js';

/** The fields of `disk nbd --json`. */
interface DiskNbdResult extends NbdCounters {
  /** NBD URI of the disk. */
  readonly uri: string;
  /** Size of the disk. */
  readonly sizeBytes: number;
  /** How long the server ran. */
  readonly seconds: number;
  /** The connection to the storage server; missing if the gateway has its own disk. */
  readonly storage?: StorageClientReport;
}

const DISK_NBD_DOCUMENT = defineDocument<DiskNbdResult>('disk-nbd');

export interface NbdGatewayOptions extends Omit<RemoteDiskOptions, 'access'>, BackendFlags, LimitFlags, TlsFlags {
  readonly listen: SocketAddress;
  readonly backend?: string;
  readonly connect?: string;
  readonly export: string;
  readonly clients?: number;
  readonly shared?: boolean;
  readonly readOnly?: boolean;
}

/** Node uses SIGUSR1 for its debugger. */
const FAILOVER_SIGNAL = 'SIGUSR2';

export async function runNbdGateway(options: NbdGatewayOptions, output: Output): Promise<void> {
  const { backend, connect } = options;
  tlsOf(options);
  if ((backend === undefined) === (connect === undefined)) {
    throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', 'no disk is given', 'give either --backend or --connect');
  }
  if (backend !== undefined) {
    const remote = (['disk', 'shared', 'standby'] as const).find((option) => options[option] !== undefined);
    if (remote !== undefined) {
      throw new RoceError('ERR_ROCE_CONFLICT', `--${remote} is about the disk of a storage server`, 'leave it out');
    }
    if (options.estatsHttp !== undefined) throw noDeviceForHttp();
    await using own = await openOwnDisk(backend, options, output);
    await serveNbd({ device: own.device, where: backend, file: own.facts }, options, output);
    return;
  }
  const ownOption = givenBackendOption(options);
  if (ownOption !== undefined) {
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      `${ownOption} is about a disk of the gateway's own`,
      'give it to the server',
    );
  }
  const { readOnly, shared } = options;
  if (readOnly === true && shared === true) {
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      '--read-only and --shared exclude each other: any number of gateways may read',
      'leave out --shared',
    );
  }
  const access = readOnly === true ? 'read' : shared === true ? 'shared' : 'write';
  await using remote = await ConnectedDisk.connect(connect!, { ...options, access }, output);
  const { client, device } = remote;
  if (device !== undefined) output.note(`RDMA by ${device.portDescription}`);
  const failover = (): void => {
    const { rdma } = client.report.sessions;
    output.note(
      rdma === 0 ? 'there is no RDMA connection to break now' : 'broke the RDMA connections, as SIGUSR2 requests',
    );
    client.failover();
  };
  process.on(FAILOVER_SIGNAL, failover);
  try {
    await serveNbd(
      { device: client.disk, where: isStreamBackend(connect!) ? connect! : `${connect} port ${options.port}`, client },
      options,
      output,
    );
  } finally {
    process.off(FAILOVER_SIGNAL, failover);
  }
}

interface Store {
  readonly device: BlockDevice;
  readonly where: string;
  readonly client?: StorageClient;
  readonly file?: () => DiskState['file'];
}

async function serveNbd(
  { device, where, client, file = () => null }: Store,
  options: NbdGatewayOptions,
  output: Output,
): Promise<void> {
  output.io.allowAfterInterruption?.(DISK_CLOSING_MS);
  const { listen, export: exportName, estats, readOnly, clients } = options;
  const description = `${formatBytes(device.sizeBytes)} of ${where}`;
  const telemetry = diskTelemetry(device, estats === true);
  await using server = await NbdServer.open({
    listen,
    exportName,
    description,
    device: telemetry.disk,
    ...(readOnly !== undefined && { readOnly }),
    ...(clients !== undefined && { clientsMax: clients }),
    ...limitsOf(options),
    ...tlsOf(options),
  });
  await using _socket = await telemetry.serve(() => ({
    role: 'gateway',
    address: 'path' in listen ? `unix:${listen.path}` : server.uri,
    store: where,
    nbdClients: server.clients,
    wrongDisks: client?.report.outage?.isWrongDisk === true ? 1 : 0,
    file: file(),
    ...clientFacts(client),
  }));
  const startNs = nowNs();
  const { uri } = server;
  output.note(`serving ${description} at ${uri}`);
  output.ready();
  await untilInterrupted(output.io.interrupted);
  const seconds = (nowNs() - startNs) / NS_PER_S;
  await server.close();
  const { connections, requests, bytesRead, bytesWritten } = server.counters;
  output.line(
    `${connections} connections, ${requests} requests, ${formatBytes(bytesRead)} read, ${formatBytes(bytesWritten)} written`,
  );
  output.document(DISK_NBD_DOCUMENT, {
    uri,
    sizeBytes: device.sizeBytes,
    seconds,
    ...server.counters,
    ...(client !== undefined && { storage: client.report }),
  });
}

function clientFacts(client: StorageClient | undefined): Pick<DiskState, 'connections' | 'crcMismatches' | 'path'> {
  if (client === undefined) return { connections: { rdma: 0, tcp: 0 }, crcMismatches: 0, path: null };
  const { sessions, crcMismatches, ...report } = client.report;
  const { state, failovers, moves, resentRequests, serverRestarts, outages, outage } = report;
  const path = { state, failovers, moves, resentRequests, serverRestarts, outages, outage };
  return { connections: sessions, crcMismatches, path };
}
