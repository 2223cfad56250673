import {
  DISK_CLOSING_MS,
  defineDocument,
  flowOf,
  type Output,
  openStorageDevice,
  type RdmaOptions,
  secureFlagsOf,
  untilInterrupted,
} from '@rocev2/command';
import { type BackendFlags, givenBackendOption, openOwnDisk } from '@rocev2/nvme/internal';
import { formatBytes, NS_PER_S, RoceError } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import {
  describeDisk,
  type SkServerCounters,
  StorageServer,
  type StorageServerOptions,
} from 'rocev2/internal/storage-rpc';
import { type Advertised, advertisedAddress, checkPlace } from './advertise.js';
import { serveDiskControl } from './disk-control.js';
import { type DiskEntry, readDiskFile } from './disk-entries.js';
import { DiskStore } from './disk-store.js';
import { type LimitFlags, limitsOf } from './limit-options.js';
import { diskTelemetry } from './telemetry.js';

/** The fields of `disk serve --json`. */
interface DiskServeResult extends SkServerCounters {
  /** TCP port of the server. */
  readonly port: number;
  /** Size of the disk. */
  readonly sizeBytes: number;
  /** How long the server ran. */
  readonly seconds: number;
}

const DISK_SERVE_DOCUMENT = defineDocument<DiskServeResult>('disk-serve');

export interface DiskServeOptions extends RdmaOptions, BackendFlags, LimitFlags {
  readonly backend?: string;
  readonly disk?: readonly DiskEntry[];
  readonly config?: string;
  /** How long the lease of a silent client lasts, nanoseconds. */
  readonly lease?: number;
  readonly advertise?: Advertised;
}

const LOOPBACK = '127.0.0.1';

export async function runServe(options: DiskServeOptions, output: Output): Promise<void> {
  const { backend, disk, config } = options;
  const hasNames = disk !== undefined || config !== undefined;
  if (hasNames === (backend !== undefined)) {
    const what = hasNames ? 'the disk of --backend has no name' : 'no disk is given';
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      what,
      'give --backend for one disk, or --disk and --config for disks with names',
    );
  }
  if (backend !== undefined) return serveOne(backend, options, output);
  return serveNamed(options, output);
}

async function serveOne(backend: string, options: DiskServeOptions, output: Output): Promise<void> {
  checkPlace(options, [backend]);
  await using own = await openOwnDisk(backend, options, output, { stands: true });
  const disk = own.device;
  const telemetry = diskTelemetry(disk, options.estats === true);
  await serve({ disks: [telemetry.disk], ...limitsOf(options) }, options, output, async (server, host) => {
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
    await own.standing?.serveAt({
      address: advertisedAddress(options, server.port),
      onOwnedAgain: () => server.renewDisk(telemetry.disk),
    });
    output.note(`serving ${formatBytes(disk.sizeBytes)} of ${backend} at ${host} on port ${server.port}, RDMA and TCP`);
    if (disk.identity !== undefined) output.note(`the disk is ${describeDisk({ ...disk.identity, sizeBytes: 0 })}`);
    await run(server, disk.sizeBytes, output);
  });
}

async function serveNamed(options: DiskServeOptions, output: Output): Promise<void> {
  const { disk = [], config, estats, iops, bandwidth } = options;
  const alone = givenBackendOption(options) ?? (iops !== undefined ? '--iops' : undefined);
  const ofOne = alone ?? (bandwidth !== undefined ? '--bandwidth' : undefined);
  if (ofOne !== undefined) {
    const hint = `append it to each disk: NAME=STORE,${ofOne.slice(2)}=...`;
    throw new RoceError('ERR_ROCE_CONFLICT', `${ofOne} applies to a single disk without a name`, hint);
  }
  const entries = [...(config === undefined ? [] : await readDiskFile(config)), ...disk];
  await using store = await DiskStore.open(entries, output, {
    configPath: config,
    host: hostOf(options),
    keys: secureFlagsOf(options),
    place: options,
    estats: estats === true,
  });
  const { memoryBytesMax } = limitsOf(options);
  const terms = { namedDisks: store.named, ...(memoryBytesMax !== undefined && { memoryBytesMax }) };
  await serve(terms, options, output, async (server, host) => {
    await store.watch(server);
    await using _control = await controlSocket(`${host}:${server.port}`, store, server);
    output.note(`serving ${store.description} at ${host} on port ${server.port}, RDMA and TCP`);
    const sizeBytes = store.list(server).reduce((sum, listed) => sum + listed.sizeBytes, 0);
    await run(server, sizeBytes, output);
  });
}

function hostOf({ bind }: DiskServeOptions): string {
  return bind?.text ?? LOOPBACK;
}

async function controlSocket(at: string, store: DiskStore, server: StorageServer): Promise<AsyncDisposable> {
  const control = await serveDiskControl(at, store, server);
  return { [Symbol.asyncDispose]: () => control.close() };
}

async function serve(
  terms: Partial<StorageServerOptions>,
  options: DiskServeOptions,
  output: Output,
  work: (server: StorageServer, host: string) => Promise<void>,
): Promise<void> {
  const { port, udpPort, lease } = options;
  const host = hostOf(options);
  output.io.allowAfterInterruption?.(DISK_CLOSING_MS);
  await using device = await openStorageDevice({ address: host, ...(udpPort !== undefined && { udpPort }) }, options);
  await using server = await StorageServer.open({
    ...terms,
    host,
    port,
    device,
    ...flowOf(options),
    ...(lease !== undefined && { leaseNs: lease }),
    onNotice: (notice) => output.note(notice),
  });
  await work(server, host);
}

async function run(server: StorageServer, sizeBytes: number, output: Output): Promise<void> {
  const startNs = nowNs();
  output.ready();
  await untilInterrupted(output.io.interrupted);
  const seconds = (nowNs() - startNs) / NS_PER_S;
  const { executed, cachedReplies, crcMismatches } = server.counters;
  if (server.untrusted > 0) output.warn(`${server.untrusted} connections of peers that are not let in were refused`);
  output.line(`${executed} requests, ${cachedReplies} repeated replies, ${crcMismatches} CRC errors`);
  output.document(DISK_SERVE_DOCUMENT, { port: server.port, sizeBytes, seconds, ...server.counters });
}
