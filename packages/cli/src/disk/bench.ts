import {
  type BenchPlan,
  type BenchRow,
  ChildService,
  type Contender,
  defineDocument,
  flowOf,
  measureInTurns,
  nicOf,
  type Output,
  printRows,
  type RdmaOptions,
  secureFlagsOf,
  whileAlive,
} from '@rocev2/command';
import { NS_PER_US } from 'rocev2/internal/core';
import { openBackend } from 'rocev2/internal/disk';
import type { BenchServerService } from './bench-server-process.js';
import { ConnectedDisk } from './remote-disk.js';

/** The fields of `disk bench --json`. */
interface DiskBenchResult {
  /** One row for each combination of disk, operation, block size and queue depth. */
  readonly rows: readonly BenchRow[];
}

const DISK_BENCH_DOCUMENT = defineDocument<DiskBenchResult>('disk-bench');

export const BENCH_TRANSPORTS = ['rdma', 'tcp'] as const;

export interface BenchOptions extends RdmaOptions, BenchPlan {
  readonly transports: ReadonlyArray<(typeof BENCH_TRANSPORTS)[number]>;
  readonly nbd?: string;
  /** Size in bytes of the disk that the benchmark makes. */
  readonly size: number;
}

const LOOPBACK = '127.0.0.1';

type Opened = Array<() => Promise<unknown>>;

export async function runBench(host: string | undefined, options: BenchOptions, output: Output): Promise<void> {
  const opened: Opened = [];
  flowOf(options);
  try {
    const server = host === undefined ? await startServer(opened) : undefined;
    const work = benchmark(host, server, options, output, opened);
    const rows = server === undefined ? await work : await whileAlive([server], work);
    printRows(rows, output);
    output.document(DISK_BENCH_DOCUMENT, { rows });
  } finally {
    for (const close of opened.reverse()) await close();
  }
  output.throwIfInterrupted();
}

type Server = ChildService<BenchServerService>;

async function startServer(opened: Opened): Promise<Server> {
  const server: Server = new ChildService('server', new URL('./bench-server-process.js', import.meta.url));
  opened.push(() => server.stop());
  return server;
}

async function benchmark(
  host: string | undefined,
  server: Server | undefined,
  options: BenchOptions,
  output: Output,
  opened: Opened,
): Promise<BenchRow[]> {
  const contenders = await connectAll(host, server, options, opened, output);
  return measureInTurns(contenders, options, output);
}

async function connectAll(
  host: string | undefined,
  server: Server | undefined,
  options: BenchOptions,
  opened: Opened,
  output: Output,
): Promise<Contender[]> {
  const { size } = options;
  const flow = flowOf(options);
  const port =
    server === undefined
      ? options.port
      : await server.call('open', {
          sizeBytes: size,
          flow,
          ...nicOf(options),
          secure: secureFlagsOf(options),
        });
  const meet = server === undefined ? { ...options, port } : { ...options, port, udpPort: 0 };
  const cpuNs = async (): Promise<number> => {
    const { user, system } = process.cpuUsage();
    return (user + system) * NS_PER_US + ((await server?.call('cpuNs', {})) ?? 0);
  };
  const contenders: Contender[] = [];
  for (const transport of options.transports) {
    const connected = await ConnectedDisk.connect(host ?? LOOPBACK, { ...meet, transport, access: 'shared' });
    opened.push(() => connected[Symbol.asyncDispose]());
    if (connected.device !== undefined) output.note(`RDMA by ${connected.device.portDescription}`);
    contenders.push({ transport, disk: connected.client.disk, cpuNs });
  }
  if (options.nbd !== undefined) {
    const disk = await openBackend(options.nbd, undefined);
    opened.push(() => disk.close());
    contenders.push({ transport: 'nbd', disk, cpuNs });
  }
  return contenders;
}
