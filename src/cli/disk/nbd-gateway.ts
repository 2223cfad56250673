/** `rocev2 disk nbd`: serves one disk, ours or a storage server's, to NBD clients until Ctrl-C. */

import { RoceError } from '../../core/errors.js';
import { formatBytes } from '../../core/units.js';
import type { BlockDevice } from '../../storage-rpc/disk/block-device.js';
import { NbdServer } from '../../storage-rpc/nbd/server.js';
import type { SocketAddress } from '../../storage-rpc/nbd/socket-address.js';
import { openBackend } from '../../storage-rpc/open-backend.js';
import { untilInterrupted } from '../interruption.js';
import type { Output } from '../output.js';
import { ConnectedDisk, type RemoteDiskOptions } from './remote-disk.js';

export interface NbdGatewayOptions extends RemoteDiskOptions {
  readonly listen: SocketAddress;
  /** One of the two. */
  readonly backend?: string;
  readonly connect?: string;
  readonly size?: number;
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
    await serveNbd(device, backend, options, output, () => ({}));
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
    await serveNbd(client.disk, `${connect} port ${options.port}`, options, output, () => ({ storage: client.report }));
  } finally {
    process.off(FAILOVER_SIGNAL, failover);
  }
}

async function serveNbd(
  device: BlockDevice,
  where: string,
  { listen, export: exportName }: NbdGatewayOptions,
  output: Output,
  details: () => object,
): Promise<void> {
  const description = `${formatBytes(device.sizeBytes)} of ${where}`;
  await using server = await NbdServer.open({ listen, exportName, description, device });
  const startMs = performance.now();
  const { uri } = server;
  output.note(`serving ${description} at ${uri}`);
  output.note('Ctrl-C ends it');
  await untilInterrupted(output.io.interrupted);
  const seconds = (performance.now() - startMs) / 1000;
  await server.close();
  const { connections, requests, bytesRead, bytesWritten } = server.counters;
  output.line(
    `${connections} connections, ${requests} requests, ${formatBytes(bytesRead)} read, ${formatBytes(bytesWritten)} written`,
  );
  output.document({ uri, sizeBytes: device.sizeBytes, seconds, ...server.counters, ...details() });
}
