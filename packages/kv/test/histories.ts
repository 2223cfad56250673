/** Random histories of readers and the owner on few keys, in virtual time, and their verdict. */

import { RoceError } from '../../../src/core/errors.js';
import { type RandomSource, randomInt, randomUnit, SeededRandom } from '../../../src/core/random.js';
import type { Kv } from '../src/kv.js';
import { isLinearizable, type Operation } from './linearizable.js';
import { World } from './world.js';

const KEYS = ['red', 'green', 'blue'];
const READERS = 4;
const TURNS = 20;
/** The owner writes often, and other keys beside: so that memory is used again and again. */
const OWNER_TURNS = 200;
const FILLERS = 40;
const SNAPSHOT_EVERY_MS = 0.1;
/** So small that compaction and the grace period are at work all the time. */
const SIZES = { bytes: 16 << 10, entries: 64, keyBytesMax: 16, valueBytesMax: 100, inlineBytes: 30, graceMs: 1 };

export interface Verdict {
  readonly linearizable: boolean;
  readonly operations: number;
  readonly torn: number;
  readonly late: number;
  readonly asked: number;
  readonly moved: number;
  readonly reconnects: number;
  readonly failed: number;
  /** Values that new owners had from snapshots. */
  readonly restored: number;
}

/** Changes the store that a client of the history sees, for negative twins. */
export type Twist = (kv: Kv<string>, random: RandomSource) => Kv<string>;

/** How a history differs from the usual one. */
export interface Course {
  readonly twist?: Twist;
  /** How often the owner dies. */
  readonly restarts?: number;
  /** A new owner begins with the last snapshot of the one before. */
  readonly snapshots?: boolean;
  /** The checker does not hear of the owner's deaths: for a negative twin. */
  readonly areRestartsHidden?: boolean;
}

export async function runHistory(
  seed: number,
  faults: string | undefined,
  { twist = (kv) => kv, restarts = 0, snapshots = false, areRestartsHidden = false }: Course = {},
): Promise<Verdict> {
  const world = await World.create({
    seed,
    readers: READERS,
    ...(faults !== undefined && { faults }),
    sizes: SIZES,
    mtu: 256,
    rateBps: 2e8,
    ...(snapshots && { snapshotEveryMs: SNAPSHOT_EVERY_MS }),
  });
  const random = new SeededRandom(seed).stream('history');
  const histories = new Map<string, Operation[]>(KEYS.map((name) => [name, []]));
  const versions = new Map<string, string>();
  let order = 0;
  let failed = 0;
  let restored = 0;

  const record = async (
    client: string,
    key: string,
    act: () => Promise<Operation['action']>,
    pending: Operation['action'],
  ) => {
    const history = histories.get(key)!;
    const place = history.push({ client, calledAt: ++order, returnedAt: undefined, action: pending }) - 1;
    try {
      const action = await act();
      history[place] = { ...history[place], returnedAt: ++order, action };
    } catch (error) {
      // A write whose connection has ended: executed or not, nobody knows. A GET is asked again.
      if (!(error instanceof RoceError) || pending.kind === 'get') throw error;
      failed++;
    }
  };

  const turn = async (client: string, kv: Kv<string>, k: number) => {
    const key = KEYS[randomInt(random, 0, KEYS.length - 1)];
    // Short values stand in the table, long ones in the log.
    const value = `${client}:${k}:`.padEnd(randomInt(random, 0, 1) === 0 ? 0 : randomInt(random, 30, 100), '#');
    const choice = randomUnit(random);
    if (choice < 0.55) {
      const get = async () => ({ kind: 'get' as const, value: await kv.get(key) });
      await record(client, key, get, { kind: 'get', value: undefined });
    } else if (choice < 0.8) {
      const set = async () => {
        versions.set(`${key} ${await kv.set(key, value)}`, value);
        return { kind: 'set' as const, value };
      };
      await record(client, key, set, { kind: 'set', value });
    } else if (choice < 0.88) {
      const remove = async () => ({ kind: 'delete' as const, existed: await kv.delete(key) });
      await record(client, key, remove, { kind: 'delete', existed: undefined });
    } else await compareAndSet(client, kv, key, value);
  };

  const compareAndSet = async (client: string, kv: Kv<string>, key: string, value: string) => {
    let entry: Awaited<ReturnType<Kv<string>['getEntry']>>;
    const get = async () => {
      entry = await kv.getEntry(key);
      return { kind: 'get' as const, value: entry?.value };
    };
    await record(client, key, get, { kind: 'get', value: undefined });
    const expected = entry?.value;
    const swap = async () => {
      const version = await kv.compareAndSet(key, entry?.version ?? 0, value);
      if (version !== undefined) versions.set(`${key} ${version}`, value);
      return { kind: 'compareAndSet' as const, expected, value, isDone: version !== undefined };
    };
    await record(client, key, swap, { kind: 'compareAndSet', expected, value, isDone: undefined });
  };

  const client = async (name: string, kv: Kv<string>) => {
    for (let k = 0; k < TURNS; k++) {
      await world.sleep(randomInt(random, 0, 20_000));
      await turn(name, kv, k);
    }
  };
  const owner = async () => {
    for (let k = 0; k < OWNER_TURNS; k++) {
      await world.sleep(randomInt(random, 0, 20_000));
      if (k % Math.ceil(OWNER_TURNS / (restarts + 1)) === 0 && k > 0) await restart(k);
      await turn('own', world.owner, k);
      await world.owner.set(`filler ${Math.floor(FILLERS * randomUnit(random) ** 3)}`, '.'.repeat(100));
    }
  };
  const restart = async (k: number) => {
    const calledAt = ++order;
    await world.restart(k, randomInt(random, 0, 5e6));
    const values = await world.snapshotValues();
    const returnedAt = ++order;
    restored += KEYS.filter((key) => values.has(key)).length;
    if (areRestartsHidden) return;
    for (const [key, history] of histories)
      history.push({ client: 'own', calledAt, returnedAt, action: { kind: 'restart', value: values.get(key) } });
  };
  // A snapshot is a GET of every key.
  world.onSnapshot = async (snapshot) => {
    const calledAt = ++order;
    const values = await snapshot;
    const returnedAt = ++order;
    for (const [key, history] of histories)
      history.push({ client: 'disk', calledAt, returnedAt, action: { kind: 'get', value: values.get(key) } });
  };
  const clients = world.readers.map((reader, k) => client(`r${k}`, twist(reader, random)));
  await world.until(Promise.all([...clients, owner()]));
  const counters = world.readers.map((reader) => reader.counters());
  const all = [...histories.values()];
  return {
    linearizable: all.every(isLinearizable),
    operations: all.flat().length,
    torn: counters.reduce((sum, { torn }) => sum + torn, 0),
    late: counters.reduce((sum, { late }) => sum + late, 0),
    asked: counters.reduce((sum, { asked }) => sum + asked, 0),
    moved: world.store.counters.moved_records,
    reconnects: counters.reduce((sum, { reconnects }) => sum + reconnects, 0),
    failed,
    restored,
  };
}
