import {
  type BenchPlan,
  type BenchRow,
  CommandFailure,
  type Contender,
  defineDocument,
  EXIT_INTERRUPTED,
  measureInTurns,
  type NicFlags,
  nicOf,
  type Output,
  printRows,
  resolveHost,
} from '@rocev2/command';
import { NS_PER_US } from 'rocev2/internal/core';
import { openBackend } from 'rocev2/internal/disk';
import { openNvme } from '../live/open-nvme.js';
import type { NvmeTransport } from '../target-connection.js';
import type { NvmeHostFlags } from './host.js';
import { openHostDevice } from './host-device.js';
import { failToConnect } from './refused-connect.js';
import { readHostKeys } from './secrets-file.js';

/** The fields of `nvme bench --json`. */
interface NvmeBenchResult {
  /** The median run of each combination. */
  readonly rows: readonly BenchRow[];
}

const NVME_BENCH_DOCUMENT = defineDocument<NvmeBenchResult>('nvme-bench');

export interface NvmeBenchOptions extends Omit<NvmeHostFlags, 'transport'>, NicFlags, BenchPlan {
  readonly nqn: string;
  readonly nsid: number;
  readonly transports: readonly NvmeTransport[];
  readonly queues: number;
  readonly nbd?: string;
}

export async function runNvmeBench(name: string, options: NvmeBenchOptions, output: Output): Promise<void> {
  const opened: AsyncDisposable[] = [];
  try {
    const rows = await measureInTurns(await connectAll(name, options, opened), options, output);
    printRows(rows, output);
    output.document(NVME_BENCH_DOCUMENT, { rows });
  } finally {
    for (const resource of opened.reverse()) await resource[Symbol.asyncDispose]();
  }
  if (output.io.interrupted.aborted) throw new CommandFailure(EXIT_INTERRUPTED);
}

async function connectAll(name: string, options: NvmeBenchOptions, opened: AsyncDisposable[]): Promise<Contender[]> {
  const { nqn, nsid, port, bind, hostNqn, queues: ioQueues, depths, nbd } = options;
  const keys = await readHostKeys(options, options.transports);
  const address = await resolveHost(name);
  const entries = Math.min(128, Math.max(...depths, 1) + 1);
  const contenders: Contender[] = [];
  for (const transport of options.transports) {
    const common = { address, port, nqn, nsid, ioQueues, entries, ...(hostNqn && { hostNqn }), ...keys };
    if (transport === 'tcp') {
      const disk = await openNvme(common).catch(failToConnect);
      opened.push(disk);
      contenders.push({ transport, disk, cpuNs });
      continue;
    }
    const device = await openHostDevice(address, bind, nicOf(options));
    opened.push({ [Symbol.asyncDispose]: () => device.close() });
    const disk = await openNvme({ ...common, device }).catch(failToConnect);
    opened.push(disk);
    contenders.push({ transport, disk, cpuNs });
  }
  if (nbd !== undefined) {
    const disk = await openBackend(nbd, undefined);
    opened.push(disk);
    contenders.push({ transport: 'nbd', disk, cpuNs });
  }
  return contenders;
}

async function cpuNs(): Promise<number> {
  const { user, system } = process.cpuUsage();
  return (user + system) * NS_PER_US;
}
