import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { askProgram, attach, endpointName, type Output } from '@rocev2/command';
import { batchedUdpAvailable } from 'rocev2/internal/dgram-ext';
import type { Dump } from 'rocev2/internal/estats';
import type { IpAddress } from 'rocev2/internal/packet';
import { type DeviceOptions, openDevice, type RdmaDevice } from 'rocev2/internal/verbs';
import { readArrivals } from './arrivals.js';
import { type Check, check } from './check.js';
import {
  checkDscp,
  checkEcn,
  checkIcrc,
  checkLoss,
  checkManagement,
  checkMtu,
  checkOrder,
  checkPort,
  checkRules,
  checkService,
} from './checks.js';
import { checkFailure } from './failed-endpoint.js';
import { type PathReport, probePath } from './path-probe.js';
import { checkTimeout, type RetryArithmetic, type RetrySettings, retryArithmetic } from './retry-arithmetic.js';
import { type ServiceReport, testService } from './service-test.js';
import { probeUdpPort } from './udp-probe.js';

/** The data that the service READs are marked as if they had met congestion: a peer that sees the mark sends a CNP. */
const MARKED = ['FIRST', 'MIDDLE', 'LAST', 'ONLY']
  .map((place) => `host>wire:opcode=RDMA_READ_RESPONSE_${place},mark`)
  .join(';');

export interface ExaminationOptions extends RetrySettings {
  readonly remote: IpAddress;
  readonly local: IpAddress;
  readonly probes: number;
  readonly intervalMs: number;
  readonly servicePort?: number;
  readonly sizeBytes: number;
  readonly dscp: number;
  readonly pcap?: string;
  readonly wire: Pick<DeviceOptions, 'frame'>;
  readonly endpoint?: string;
}

/** The fields of `doctor --json`, without the host's name. */
export interface Examination {
  /** Address of this side. */
  readonly local: string;
  /** Address of the host. */
  readonly remote: string;
  /** One for each thing that was looked at. */
  readonly checks: readonly Check[];
  /** Answers of RDMA CM; null where nothing could be sent. */
  readonly path: PathReport | null;
  /** The connection to the service; null where none was named. */
  readonly service: ServiceReport | null;
  /** What the timeouts come to. */
  readonly retries: RetryArithmetic;
}

export async function examine(options: ExaminationOptions, output: Output): Promise<Examination> {
  const { remote, local, wire, endpoint } = options;
  const checks: Check[] = [];
  let path: PathReport | null = null;
  let service: ServiceReport | null = null;
  if (wire.frame === undefined) checks.push(checkPort(await probeUdpPort(local, remote)));
  const folder = await mkdtemp(join(tmpdir(), 'rocev2-doctor-'));
  const capture = options.pcap ?? join(folder, 'doctor.pcapng');
  try {
    const device = await openUnlessTaken(
      { address: local.text, io: wire.frame ? 'dgram' : 'auto', pcap: capture, loss: MARKED, ...wire },
      endpoint,
    );
    if (device === undefined) {
      checks.push(
        check(
          'cm',
          'not tested',
          `the endpoint itself has UDP port 4791 of ${local}`,
          'give this host a second address, and name it by --bind',
        ),
      );
    } else ({ path, service } = await sendProbes(device, options, capture, checks, output));
  } finally {
    await rm(folder, { recursive: true });
  }
  checks.push(checkTimeout(options, path?.rttNs?.max));
  if (endpoint !== undefined) checks.push(...(await failuresOf(endpoint, remote)));
  return { local: local.text, remote: remote.text, checks, path, service, retries: retryArithmetic(options) };
}

async function sendProbes(
  device: RdmaDevice,
  options: ExaminationOptions,
  capture: string,
  checks: Check[],
  output: Output,
): Promise<Pick<Examination, 'path' | 'service'>> {
  const { remote, local, servicePort, dscp, wire } = options;
  const signal = output.io.interrupted;
  let path: PathReport;
  let service: ServiceReport | null = null;
  try {
    await device.link.resolve(remote);
    path = await probePath(device, remote, { count: options.probes, intervalMs: options.intervalMs, dscp, signal });
    checks.push(checkManagement(path), checkLoss(path), checkOrder(path));
    if (servicePort !== undefined && !signal.aborted) {
      const test = { port: servicePort, sizeBytes: options.sizeBytes, dscp, signal };
      service = await testService(device, remote, test, output.io);
      checks.push(checkService(service), checkMtu(service));
    } else {
      checks.push(
        check('mtu', 'not tested', 'no service was named', 'start rping -s -P -S 8192 there, and add --port 7174'),
      );
    }
  } finally {
    await device.close();
  }
  const arrivals = await readArrivals(capture, local, remote);
  const isVisible = wire.frame !== undefined || batchedUdpAvailable() === undefined;
  const isAnswered = path.answered > 0 || (service?.pings.length ?? 0) > 0;
  checks.push(checkDscp(dscp, arrivals, isVisible), checkEcn(arrivals, isVisible), checkIcrc(arrivals, isAnswered));
  checks.push(checkRules(arrivals));
  return { path, service };
}

async function openUnlessTaken(options: DeviceOptions, endpoint: string | undefined): Promise<RdmaDevice | undefined> {
  try {
    return await openDevice(options);
  } catch (error) {
    if (endpoint !== undefined && (error as Error).message.includes('EADDRINUSE')) return undefined;
    throw error;
  }
}

async function failuresOf(endpoint: string, remote: IpAddress): Promise<Check[]> {
  const checks: Check[] = [];
  for (const { target, snapshot } of await attach(endpoint, 1)) {
    const dumps = JSON.parse(await askProgram(target, '/dumps.json')) as Dump[];
    const failed = dumps.filter(({ reason, qp }) => reason === 'error' && qp['remote'] === remote.text);
    if (failed.length === 0) {
      checks.push(check('endpoint', 'ok', `${endpointName(snapshot)} remembers no failed work towards ${remote}`));
    }
    checks.push(...failed.map(checkFailure));
  }
  return checks;
}
