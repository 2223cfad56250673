import {
  counted,
  DISK_CLOSING_MS,
  defineDocument,
  type NicFlags,
  noDeviceForHttp,
  type Output,
  openStorageDevice,
  packageVersion,
  type TelemetryFlags,
  untilInterrupted,
} from '@rocev2/command';
import { formatBytes, NS_PER_S, RoceError } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import type { IpAddress } from 'rocev2/internal/packet';
import type { RdmaDevice } from 'rocev2/internal/verbs';
import { type NamespaceCounters, NvmeTargetServer } from '../live/nvme-target-server.js';
import type { NvmeTransport } from '../target-connection.js';
import { parseChange } from './changes.js';
import { openControl } from './control.js';
import type { DiskOption } from './disk-option.js';
import { readSecrets, readTlsKeys } from './secrets-file.js';
import { ServedDisks } from './served-disks.js';

/** The fields of `nvme target --json`: what a target served. */
interface NvmeTargetResult {
  /** Addresses of its discovery log page. */
  readonly ports: ReadonlyArray<{
    /** Transport of connections to it. */
    readonly transport: 'rdma' | 'tcp';
    /** IP address. */
    readonly address: string;
    /** Port of RDMA_PS_TCP, or of TCP. */
    readonly port: number;
  }>;
  /** In the order of the command line. */
  readonly subsystems: ReadonlyArray<{
    /** NVMe qualified name. */
    readonly nqn: string;
    /** Its namespaces. */
    readonly namespaces: readonly NamespaceCounters[];
  }>;
  /** Time from the start to Ctrl-C. */
  readonly seconds: number;
  /** Queues that connected. */
  readonly queues: number;
  /** Commands that came in. */
  readonly commands: number;
  /** Commands that were answered with an error, hosts' probing among them. */
  readonly refused: number;
  /** Connects and authentications of hosts that were refused. */
  readonly refusedHosts: number;
  /** Rules of `--command-faults`, in their order. */
  readonly faults: ReadonlyArray<{
    /** As it was written. */
    readonly rule: string;
    /** Commands that it struck. */
    readonly struck: number;
  }>;
}

const NVME_TARGET_DOCUMENT = defineDocument<NvmeTargetResult>('nvme-target');

export interface NvmeTargetOptions extends NicFlags, TelemetryFlags {
  readonly disk: readonly DiskOption[];
  /** Size in bytes of disks in memory and in new files. */
  readonly size?: number;
  readonly bind: readonly IpAddress[];
  readonly port: number;
  readonly transport: readonly NvmeTransport[];
  readonly host?: readonly string[];
  readonly readOnly?: true;
  readonly faults?: string;
  readonly dhchapKeys?: string;
  readonly tlsKeys?: string;
  readonly reservations?: string;
  readonly commandFaults?: string;
  readonly control?: string;
  readonly seed?: number;
}

export async function runNvmeTarget(options: NvmeTargetOptions, output: Output): Promise<void> {
  const opened: AsyncDisposable[] = [];
  try {
    await serve(options, output, opened);
  } finally {
    for (const resource of opened.reverse()) await resource[Symbol.asyncDispose]();
  }
}

async function serve(options: NvmeTargetOptions, output: Output, opened: AsyncDisposable[]): Promise<void> {
  const { disk, size, bind, port, transport, host, readOnly = false } = options;
  const hostSecrets = options.dhchapKeys === undefined ? undefined : await readSecrets(options.dhchapKeys);
  const tlsKeys = options.tlsKeys === undefined ? undefined : await readTlsKeys(options.tlsKeys);
  if (tlsKeys !== undefined && transport.includes('rdma')) {
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      'RDMA has no TLS: hosts would get in without a key',
      'give --transport tcp',
    );
  }
  const served = new ServedDisks(readOnly, output);
  opened.push(served);
  const disks = await served.open(disk, size);
  const devices: RdmaDevice[] = [];
  const { estatsHttp, ...others } = options;
  if (estatsHttp !== undefined && !transport.includes('rdma')) throw noDeviceForHttp();
  for (const [i, { text }] of (transport.includes('rdma') ? bind : []).entries()) {
    const device = await openStorageDevice({ address: text }, i === 0 ? options : others);
    opened.push(device);
    devices.push(device);
  }
  const subsystems = [...disks].map(([nqn, disks]) => ({
    nqn,
    disks,
    readOnly,
    ...(host && { hosts: host }),
    ...(hostSecrets && { hostSecrets }),
  }));
  const server = await NvmeTargetServer.open({
    subsystems,
    devices,
    tcpAddresses: transport.includes('tcp') ? bind.map(({ text }) => text) : [],
    port,
    ...(tlsKeys !== undefined && { tlsKeys }),
    firmware: packageVersion(),
    onNotice: (notice) => output.note(notice),
    ...(options.reservations !== undefined && { reservations: options.reservations }),
    ...(options.commandFaults !== undefined && { faults: options.commandFaults }),
    ...(options.seed !== undefined && { seed: options.seed }),
  });
  opened.push(server);
  if (options.control !== undefined) {
    const control = await openControl(options.control, async (words) => {
      const done = await served.change(server, parseChange(words));
      output.note(done);
      return done;
    });
    opened.push(control);
  }
  for (const device of devices) output.note(`RDMA by ${device.portDescription}`);
  for (const { nqn, disks } of subsystems) {
    output.note(`serving ${disks.map(({ sizeBytes }) => formatBytes(sizeBytes)).join(' and ')} as ${nqn}`);
  }
  for (const at of server.ports)
    output.note(
      `listening on ${at.address} ${at.transport.toUpperCase()} port ${at.port}${at.security === 'tls' ? ', TLS' : ''}`,
    );
  if (server.kernelTlsRefusal !== undefined) {
    output.note(
      `hosts of the Linux kernel cannot use TLS, because session tickets stay on: ${server.kernelTlsRefusal}`,
    );
  }
  output.ready();
  output.io.allowAfterInterruption?.(DISK_CLOSING_MS);
  const startNs = nowNs();
  await untilInterrupted(output.io.interrupted);
  const seconds = (nowNs() - startNs) / NS_PER_S;
  await server.close();
  report(server, [...disks.keys()], seconds, output);
}

function report(server: NvmeTargetServer, nqns: readonly string[], seconds: number, output: Output): void {
  const { queues, commands, refused, refusedHosts } = server.counters;
  const subsystems = nqns.map((nqn) => ({ nqn, namespaces: [...server.namespaceCounters(nqn)!] }));
  output.line(`${queues} queues, ${commands} commands, ${refused} of them answered with an error`);
  if (refusedHosts > 0) output.line(`${refusedHosts} refused connections of hosts`);
  for (const { nqn, namespaces } of subsystems) {
    for (const { nsid, bytesRead, bytesWritten } of namespaces) {
      output.line(`${nqn} ${nsid}: ${formatBytes(bytesRead)} read, ${formatBytes(bytesWritten)} written`);
    }
  }
  for (const { rule, struck } of server.faults) output.line(`fault ${rule}: ${counted(struck, 'command')}`);
  const ports = server.ports.map(({ transport, address, port }) => ({ transport, address: address.text, port }));
  output.document(NVME_TARGET_DOCUMENT, { ports, subsystems, seconds, ...server.counters, faults: server.faults });
}
