/** `rocev2 disk serve`: one disk for clients over RDMA and TCP until Ctrl-C. */

import { formatBytes, NS_PER_S } from '../../core/units.js';
import { nowNs } from '../../driver/system-clock.js';
import { StorageServer } from '../../storage-rpc/live/storage-server.js';
import { describeDisk } from '../../storage-rpc/sk/expected-disk.js';
import { untilInterrupted } from '../interruption.js';
import type { Output } from '../output.js';
import { type BackendFlags, DISK_CLOSING_MS, openOwnDisk } from './backend-options.js';
import { type LimitFlags, limitsOf } from './limit-options.js';
import { flowOf, openStorageDevice, type RdmaOptions } from './rdma-options.js';
import { diskTelemetry } from './telemetry.js';

/** Options of `rocev2 disk serve`. */
export interface ServeOptions extends RdmaOptions, BackendFlags, LimitFlags {
  /** `memory` or `file:PATH`. */
  readonly backend: string;
}

const LOOPBACK = '127.0.0.1';

/** Runs until Ctrl-C, which is the normal end of a server. */
export async function runServe(options: ServeOptions, output: Output): Promise<void> {
  const { backend, port, bind, udpPort } = options;
  const host = bind?.text ?? LOOPBACK;
  await using own = await openOwnDisk(backend, options, output);
  const disk = own.device;
  output.io.allowAfterInterruption?.(DISK_CLOSING_MS);
  await using device = await openStorageDevice({ address: host, ...(udpPort !== undefined && { udpPort }) }, options);
  const telemetry = diskTelemetry(disk, options.estats === true);
  await using server = await StorageServer.open({
    disks: [telemetry.disk],
    host,
    port,
    device,
    ...flowOf(options),
    onNotice: (notice) => output.note(notice),
    ...limitsOf(options),
  });
  await using _socket = await telemetry.serve(() => ({
    role: 'server',
    address: host,
    store: backend,
    nbdClients: 0,
    connections: server.transports,
    crcMismatches: server.counters.crcMismatches,
    wrongDisks: server.counters.wrongDisks,
    file: own.facts(),
    path: null,
  }));
  const startNs = nowNs();
  output.note(`serving ${formatBytes(disk.sizeBytes)} of ${backend} at ${host} on port ${server.port}, RDMA and TCP`);
  if (disk.identity !== undefined) output.note(`the disk is ${describeDisk({ ...disk.identity, sizeBytes: 0 })}`);
  output.note(`RDMA by ${device.portDescription}`);
  output.note('Ctrl-C ends it');
  await untilInterrupted(output.io.interrupted);
  const seconds = (nowNs() - startNs) / NS_PER_S;
  const { executed, cachedReplies, crcMismatches } = server.counters;
  output.line(`${executed} requests, ${cachedReplies} repeated replies, ${crcMismatches} CRC errors`);
  output.document('disk-serve', { port: server.port, sizeBytes: disk.sizeBytes, seconds, ...server.counters });
}
