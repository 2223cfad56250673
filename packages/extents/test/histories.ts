/** Histories of clients of a stream and of a disk under faults, in virtual time, and what independent checkers say. */

import { type RandomSource, randomInt, randomUnit } from '../../../src/core/random.js';
import { until } from '../../../test/support/virtual-time.js';
import { isLinearizable, type Operation } from '../../kv/test/linearizable.js';
import { createDisk, openDisk } from '../src/disk/disks.js';
import type { StreamDisk } from '../src/disk/stream-disk.js';
import { dataIn } from '../src/record.js';
import { type AppendCall, type ReadCall, whyNotAppendOnly } from './append-history.js';
import { Cluster, TIMING } from './cluster.js';
import { FAULT_KINDS, Faults } from './faults.js';

const STREAM = 'log';
const BLOCK = 4096;
const BLOCKS = 4;
const FAULTS = 5;
const EVENTS_MAX = 500_000;

/** Changes what a client sees, to plant a stale read. */
export type Twist<T> = (result: T, random: RandomSource) => T;

export interface HistoryVerdict {
  readonly problem: string | undefined;
  readonly reads: number;
  readonly writes: number;
}

interface World {
  readonly cluster: Cluster;
  readonly random: RandomSource;
  /** Causes faults; resolves when they have ended. */
  causeFaults(): Promise<void>;
}

async function inWorld(seed: number, course: (world: World) => Promise<HistoryVerdict>): Promise<HistoryVerdict> {
  const cluster = new Cluster(seed);
  const run = async () => {
    await cluster.start();
    await cluster.sleep(2 * TIMING.reportMs);
    const faults = new Faults(cluster, cluster.seeds.stream('faults'), {
      kind: FAULT_KINDS[seed % FAULT_KINDS.length],
    });
    const cause = async () => {
      for (let k = 0; k < FAULTS; k++) {
        await cluster.sleep(20);
        const fault = faults.next();
        const other = faults.other(fault.machine);
        await faults.cause(fault, faults.duration(), () => other);
      }
      await faults.end();
    };
    return course({ cluster, random: cluster.seeds.stream('history'), causeFaults: cause });
  };
  return until(cluster.events, run(), EVENTS_MAX);
}

/** One client appends, and is followed by another one; two clients read. */
export function runStreamHistory(seed: number, twist: Twist<string[]> = (ids) => ids): Promise<HistoryVerdict> {
  return inWorld(seed, async ({ cluster, random, causeFaults }) => {
    const appends: AppendCall[] = [];
    const reads: ReadCall[] = [];
    let order = 0;
    let isOver = false;
    await cluster.managerFrom('client').call('createStream', { stream: STREAM }, 1000);
    const write = async () => {
      for (let owner = 1; owner <= 2; owner++) {
        const writer = await openWriter(cluster, `owner${owner}`);
        for (let k = 0; k < 12; k++) {
          const id = `${owner}.${k}`;
          const place = appends.push({ id, calledAt: ++order, returnedAt: undefined }) - 1;
          const data = Buffer.from(id.padEnd(randomInt(random, 5, 4000)));
          const done = writer.append(data).then(
            () => {
              appends[place] = { ...appends[place], returnedAt: ++order };
            },
            () => {},
          );
          await Promise.race([done, cluster.sleep(randomInt(random, 1, 40))]);
        }
      }
    };
    const read = async () => {
      const reader = cluster.reader();
      while (!isOver) {
        await cluster.sleep(randomInt(random, 5, 40));
        const calledAt = ++order;
        const ids: string[] = [];
        try {
          const { extents } = await cluster.managerFrom('client').call('locate', { stream: STREAM }, TIMING.callMs);
          for await (const { head, bytes } of reader.scan(extents)) ids.push(dataIn(bytes, head).toString().trimEnd());
        } catch {
          continue; // No replica could be reached.
        }
        reads.push({ calledAt, returnedAt: ++order, ids: twist(ids, random) });
      }
    };
    const readers = [read(), read()];
    await Promise.all([write(), causeFaults()]);
    await cluster.sleep(500);
    isOver = true;
    await Promise.all(readers);
    return { problem: whyNotAppendOnly(appends, reads), reads: reads.length, writes: appends.length };
  });
}

async function openWriter(cluster: Cluster, owner: string) {
  for (;;) {
    try {
      return (await cluster.writer(STREAM, owner)).writer;
    } catch {
      await cluster.sleep(20);
    }
  }
}

/** Three clients write and read blocks of a disk; in the middle another owner takes it over. */
export function runDiskHistory(
  seed: number,
  twist: Twist<string | undefined> = (value) => value,
): Promise<HistoryVerdict> {
  return inWorld(seed, async ({ cluster, random, causeFaults }) => {
    const histories: Operation[][] = Array.from({ length: BLOCKS }, () => []);
    let order = 0;
    let reads = 0;
    let attempts = 0;
    const parts = cluster.diskParts();
    await untilDone(cluster, async () => {
      const name = `vol${++attempts}`; // One that was not finished stays.
      await createDisk(parts, { name, sizeBytes: BLOCKS * BLOCK, owner: 'maker' });
    });
    const faults = causeFaults();
    const turn = async (client: string, disk: StreamDisk, k: number) => {
      const block = randomInt(random, 0, BLOCKS - 1);
      const history = histories[block];
      const calledAt = ++order;
      if (randomUnit(random) < 0.5) {
        const value = `${client}.${k}`;
        const place = history.push({ client, calledAt, returnedAt: undefined, action: { kind: 'set', value } }) - 1;
        await disk.write(block * BLOCK, Buffer.from(value.padEnd(BLOCK)));
        history[place] = { ...history[place], returnedAt: ++order };
        return;
      }
      const bytes = Buffer.alloc(BLOCK);
      await disk.read(block * BLOCK, BLOCK, bytes);
      const value = bytes[0] === 0 ? undefined : bytes.toString().trimEnd();
      reads++;
      history.push({ client, calledAt, returnedAt: ++order, action: { kind: 'get', value: twist(value, random) } });
    };
    for (let owner = 1; owner <= 2; owner++) {
      const name = `owner${owner}`;
      const disk = await untilDone(cluster, () =>
        openDisk(parts, { name: `vol${attempts}`, owner: name, takeOver: true }),
      );
      const client = async (number: number) => {
        for (let k = 0; k < 12; k++) {
          await cluster.sleep(randomInt(random, 0, 30));
          await turn(`${name} ${number}`, disk, k).catch(() => {}); // Nodes are out of reach, or it has another owner.
        }
      };
      const clients = Promise.all([client(1), client(2), client(3)]);
      await (owner === 1 ? Promise.race([clients, cluster.sleep(250)]) : clients);
      if (owner === 1) await disk.close();
    }
    await faults;
    const wrong = histories.findIndex((history) => !isLinearizable(history));
    const problem = wrong < 0 ? undefined : `block ${wrong} is not linearizable: ${JSON.stringify(histories[wrong])}`;
    return { problem, reads, writes: histories.flat().length - reads };
  });
}

async function untilDone<T>(cluster: Cluster, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch {
      await cluster.sleep(30);
    }
  }
}
