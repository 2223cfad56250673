/**
 * `rocev2 disk bench`: the same I/O over RDMA and over TCP on the same server, and on an NBD export beside them if asked for. Runs take turns,
 * so that a machine that is busy for a while is busy for all; of several runs the median counts.
 */

import { RoceError } from '../../core/errors.js';
import { SeededRandom } from '../../core/random.js';
import { formatBytes, formatNs, NS_PER_US } from '../../core/units.js';
import { ChildService, whileAlive } from '../../processes/child-service.js';
import { openBackend } from '../../storage-rpc/open-backend.js';
import { CommandFailure, EXIT_INTERRUPTED } from '../exit.js';
import type { Column, Output } from '../output.js';
import { type BenchCell, type BenchOp, type BenchRow, type Contender, fillArea, runCell } from './bench-run.js';
import type { BenchServerService } from './bench-server-process.js';
import { flowOf, type RdmaOptions } from './rdma-options.js';
import { ConnectedDisk } from './remote-disk.js';

/** Transports to a storage server. */
export const BENCH_TRANSPORTS = ['rdma', 'tcp'] as const;

/** Options of `rocev2 disk bench`; each combination of operation, block and depth is run. */
export interface BenchOptions extends RdmaOptions {
  /** Transports to measure. */
  readonly transports: ReadonlyArray<(typeof BENCH_TRANSPORTS)[number]>;
  /** URI of an NBD export. */
  readonly nbd?: string;
  /** Operations. */
  readonly ops: readonly BenchOp[];
  /** Size of a request in bytes. */
  readonly blocks: readonly number[];
  /** Requests in flight. */
  readonly depths: readonly number[];
  /** Nanoseconds of one run. */
  readonly duration: number;
  /** Runs of each combination; the median counts. */
  readonly reps: number;
  /** Size in bytes of the disk that the benchmark makes. */
  readonly size: number;
}

const LOOPBACK = '127.0.0.1';
const WARM_UP_DEPTH = 4;

/** Open resources, closed in reverse order. */
type Opened = Array<() => Promise<unknown>>;

/** Runs the benchmark against `host`, or against a server process of its own. */
export async function runBench(host: string | undefined, options: BenchOptions, output: Output): Promise<void> {
  const opened: Opened = [];
  flowOf(options); // Checks the options before a process is started.
  try {
    const server = host === undefined ? await startServer(opened) : undefined;
    const work = benchmark(host, server, options, output, opened);
    const rows = server === undefined ? await work : await whileAlive([server], work);
    printRows(rows, output);
    output.document('disk-bench', { rows });
  } finally {
    for (const close of opened.reverse()) await close();
  }
  if (output.io.interrupted.aborted) throw new CommandFailure(EXIT_INTERRUPTED);
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
  const { interrupted } = output.io;
  for (const contender of contenders) {
    const { transport, disk } = contender;
    await output.during(`filling the disk over ${transport}`, fillArea(disk));
    await output.during(`warming up over ${transport}`, warmUp(contender, options, interrupted));
  }
  const cells = options.ops.flatMap((op) =>
    options.blocks.flatMap((blockBytes) => options.depths.map((queueDepth) => ({ op, blockBytes, queueDepth }))),
  );
  output.note(`measuring ${cells.length} cells, ${options.reps} times ${formatNs(options.duration)} for each disk`);
  const progress = output.progress(cells.length * options.reps * contenders.length);
  const rows: BenchRow[] = [];
  let runs = 0;
  for (const cell of cells) {
    const text = `${cell.op} ${formatBytes(cell.blockBytes)}, queue depth ${cell.queueDepth}`;
    const onRun = () => progress.update(runs++, text);
    const turns = await runTurns(contenders, cell, options, { interrupted, onRun });
    if (interrupted.aborted) break; // An incomplete run does not count.
    rows.push(...turns);
  }
  progress.stop();
  return rows;
}

async function connectAll(
  host: string | undefined,
  server: Server | undefined,
  options: BenchOptions,
  opened: Opened,
  output: Output,
): Promise<Contender[]> {
  const { io, engine, spin, size } = options;
  const flow = flowOf(options);
  const port =
    server === undefined ? options.port : await server.call('open', { sizeBytes: size, flow, io, engine, spin });
  // With a server process of its own, the client needs no address.
  const meet = server === undefined ? { ...options, port } : { ...options, port, udpPort: 0 };
  const cpuNs = async (): Promise<number> => {
    const { user, system } = process.cpuUsage();
    return (user + system) * NS_PER_US + ((await server?.call('cpuNs', {})) ?? 0);
  };
  const contenders: Contender[] = [];
  for (const transport of options.transports) {
    const connected = await ConnectedDisk.connect(host ?? LOOPBACK, { ...meet, transport });
    opened.push(() => connected[Symbol.asyncDispose]());
    if (connected.device !== undefined) output.note(`RDMA by ${connected.device.portDescription}`);
    contenders.push({ transport, disk: connected.client.disk, cpuNs });
  }
  if (options.nbd !== undefined) {
    const disk = await openBackend(options.nbd, undefined);
    opened.push(() => disk.close());
    contenders.push({ transport: 'nbd', disk, cpuNs });
  }
  for (const { transport, disk } of contenders) {
    const largest = Math.max(...options.blocks);
    if (disk.sizeBytes >= largest) continue;
    throw new RoceError(
      'ERR_ROCE_OUT_OF_RANGE',
      `the disk over ${transport} is smaller than one block of ${largest} bytes`,
    );
  }
  return contenders;
}

/** Warms up the compiled code with the same work for each disk, so that the first one measured has no disadvantage. Not counted. */
async function warmUp(contender: Contender, { ops, blocks, duration }: BenchOptions, interrupted: AbortSignal) {
  const random = new SeededRandom(0).stream('warm-up');
  const blockBytes = Math.min(...blocks);
  for (const op of ops) {
    await runCell(contender, { op, blockBytes, queueDepth: WARM_UP_DEPTH }, 2 * duration, random, interrupted);
  }
}

/** Measures the disks in turn, `reps` times; returns the median run of each. */
async function runTurns(
  contenders: readonly Contender[],
  cell: BenchCell,
  { duration, reps, seed = 1 }: BenchOptions,
  { interrupted, onRun }: { readonly interrupted: AbortSignal; onRun(): void },
): Promise<BenchRow[]> {
  const runs: BenchRow[][] = contenders.map(() => []);
  for (let rep = 0; rep < reps && !(interrupted.aborted && rep > 0); rep++) {
    for (const [i, contender] of contenders.entries()) {
      onRun();
      const random = new SeededRandom(seed).stream(`offsets ${rep}`);
      runs[i].push(await runCell(contender, cell, duration, random, interrupted));
    }
  }
  return runs.map((rows) => rows.toSorted((a, b) => a.iops - b.iops)[Math.floor(rows.length / 2)]);
}

const COLUMNS: readonly Column[] = [
  { title: 'Op', align: 'left' },
  { title: 'Block', align: 'right' },
  { title: 'Depth', align: 'right' },
  { title: 'Transport', align: 'left' },
  { title: 'IOPS', align: 'right' },
  { title: 'MB/s', align: 'right' },
  { title: 'p50', align: 'right' },
  { title: 'p99', align: 'right' },
  { title: 'CPU/IO', align: 'right' },
];

function printRows(rows: readonly BenchRow[], output: Output): void {
  output.table(
    COLUMNS,
    rows.map(({ op, blockBytes, queueDepth, transport, iops, bytesPerSecond, latencyNs, cpuNsPerIo }) => [
      op,
      formatBytes(blockBytes),
      queueDepth,
      transport,
      Math.round(iops),
      (bytesPerSecond / 1e6).toFixed(1),
      formatNs(latencyNs.p50),
      formatNs(latencyNs.p99),
      formatNs(cpuNsPerIo),
    ]),
  );
}
