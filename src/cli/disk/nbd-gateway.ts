/** `rocev2 disk nbd`: serves one disk to NBD clients until Ctrl-C. */

import { formatBytes } from '../../core/units.js';
import { NbdServer } from '../../storage-rpc/nbd/server.js';
import type { SocketAddress } from '../../storage-rpc/nbd/socket-address.js';
import { openBackend } from '../../storage-rpc/open-backend.js';
import { untilInterrupted } from '../interruption.js';
import type { Output } from '../output.js';

export interface NbdGatewayOptions {
  readonly listen: SocketAddress;
  readonly backend: string;
  readonly size?: number;
  readonly export: string;
}

/** Ends well when it is interrupted: that is how a server ends. */
export async function runNbdGateway(options: NbdGatewayOptions, output: Output): Promise<void> {
  const { listen, backend, size, export: exportName } = options;
  await using device = await openBackend(backend, size);
  const description = `${formatBytes(device.sizeBytes)} of ${backend}`;
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
  output.document({ uri, sizeBytes: device.sizeBytes, seconds, ...server.counters });
}
