import { copyFileSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { randomUnit, SeededRandom } from '../../../src/core/random.js';
import type { KvRecord } from '../src/record.js';
import { decodeSnapshot, encodeSnapshot, type Snapshot } from '../src/snapshot.js';
import { SnapshotFile } from '../src/snapshot-file.js';
import { restore, SnapshotKeeper, type SnapshotPlace } from '../src/snapshot-keeper.js';
import { KvStore } from '../src/store.js';
import { key, setNow, smallStore, TestClock, textOf, value } from './small-store.js';

const TABLE = { buckets: 20, seed: 7 };
const TIME = { nowMs: 1000, wallMs: 1.7e12 };

async function decoded(bytes: Buffer, pieceBytes = bytes.length): Promise<KvRecord[]> {
  const pieces = [];
  for (let at = 0; at < bytes.length; at += pieceBytes) pieces.push(bytes.subarray(at, at + pieceBytes));
  const records = [];
  for await (const record of (await decodeSnapshot(Readable.from(pieces))).records) records.push(record);
  return records;
}

const record = (name: string, bytes: Buffer, expiresMs = 0): KvRecord => ({
  version: 5,
  expiresMs,
  key: key(name),
  value: bytes,
});
const RECORDS = [record('short', value(3, 'a')), record('long', value(500, 'b'), 1500), record('empty', value(0, 0))];
const BYTES = Buffer.concat(encodeSnapshot(RECORDS, TABLE, TIME));

describe('a snapshot', () => {
  it('has the entries with times of day, however its bytes come', async () => {
    for (const pieceBytes of [1, 7, 64, BYTES.length])
      expect(await decoded(BYTES, pieceBytes)).toEqual([
        RECORDS[0],
        { ...RECORDS[1], expiresMs: 1.7e12 + 500 },
        RECORDS[2],
      ]);
  });

  it('with any bit flipped, cut anywhere, or with more behind it is refused', async () => {
    for (let at = 0; at < BYTES.length; at++) {
      const damaged = Buffer.from(BYTES);
      damaged[at] ^= 1 << (at % 8);
      const code = at < 12 ? 'ERR_ROCE_MISMATCH' : 'ERR_ROCE_MALFORMED';
      await expect(decoded(damaged), `byte ${at}`).rejects.toMatchObject({ code });
    }
    for (let length = 1; length < BYTES.length; length++)
      await expect(decoded(BYTES.subarray(0, length)), `${length} bytes`).rejects.toBeInstanceOf(Error);
    await expect(decoded(Buffer.concat([BYTES, Buffer.alloc(1)]))).rejects.toThrow('more data after');
  });

  it('says what is wrong with it, and what to do', async () => {
    await expect(decoded(Buffer.from('something else entirely, of many bytes'))).rejects.toThrow(
      /not a snapshot of @rocev2\/kv \(name another file/,
    );
    const newer = Buffer.from(BYTES);
    newer.writeUInt32LE(2, 8);
    await expect(decoded(newer)).rejects.toThrow('it has layout 2, and this version of rocev2 reads layout 1');
    await expect(decoded(BYTES.subarray(0, -1))).rejects.toThrow(/ends before its last 1 records \(put back a copy/);
  });
});

/** A place in memory. */
function memoryPlace(): SnapshotPlace & { pieces: readonly Buffer[]; saves: number; load(): Promise<Snapshot> } {
  const place = {
    pieces: encodeSnapshot([], TABLE, TIME) as readonly Buffer[],
    saves: 0,
    load: () => decodeSnapshot(Readable.from(place.pieces)),
    save: async (pieces: readonly Buffer[]) => {
      place.pieces = pieces;
      place.saves++;
    },
  };
  return place;
}

/** A clock whose one timer the test fires. */
class FiredClock extends TestClock {
  wake: (() => void) | undefined;
  override wakeAt(_timeNs?: number, wake?: () => void): () => void {
    this.wake = wake;
    return () => {
      this.wake = undefined;
    };
  }
}

describe('the keeper of snapshots', () => {
  const clock = new FiredClock();
  const parts = (place: SnapshotPlace, wallMs = 1.7e12) => ({ place, everyMs: 100, clock, wallMs: () => wallMs });
  const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

  it('fills the next store, in the midst of whatever the one before did', async () => {
    const { store, clock: time } = smallStore({ entries: 600 });
    const place = memoryPlace();
    const keeper = new SnapshotKeeper(store, parts(place));
    const map = new Map<string, string>();
    const random = new SeededRandom(1).stream('writes');
    for (let turn = 0; turn < 3000; turn++) {
      // Some keys change often, others hardly ever: the records of these have to be moved.
      const name = `${Math.floor(120 * randomUnit(random) ** 3)}`;
      setNow(store, time, key(name), value(turn % 200, turn % 256));
      map.set(name, value(turn % 200, turn % 256).toString('latin1'));
      if (turn % 200 !== 199) continue;
      await keeper.save();
      const next = smallStore({ entries: 1000, bytes: 128 << 10, inlineBytes: 0 }).store; // Of another form.
      await restore(next, await place.load(), parts(place));
      expect(next.size).toBe(map.size);
      for (const [one, text] of map) expect(textOf(next.get(key(one)))).toBe(text);
    }
    expect(store.counters.moved_records).toBeGreaterThan(100);
  });

  it('of an earlier moment gives entries other versions than they ever had, so that no stale condition holds', async () => {
    const versions = new Set<number>();
    const place = memoryPlace();
    const write = (seed: number, last?: Snapshot) => {
      const { store, clock: time } = smallStore({ entries: 100 }, { seed });
      const done = last === undefined ? Promise.resolve() : restore(store, last, parts(place));
      return done.then(() => ({ store, time }));
    };
    const { store, time } = await write(1);
    for (let k = 0; k < 50; k++) setNow(store, time, key('k'), value(3, k));
    await new SnapshotKeeper(store, parts(place)).save();
    for (let k = 0; k < 50; k++) setNow(store, time, key('k'), value(3, k));
    const stale = store.get(key('k'))!.version;
    versions.add(stale);
    for (let seed = 2; seed < 12; seed++) {
      const next = await write(seed, await place.load());
      expect(next.store.set(key('k'), value(3, 'z'), { ifVersion: stale }).outcome).toBe('conflict');
      versions.add(next.store.get(key('k'))!.version);
    }
    expect(versions.size).toBe(11);
  });

  it.each([1, 2, 3, 4])('fills a store of the same sizes also where many buckets are full: seed %i', async (seed) => {
    const { store, clock: time } = smallStore({ entries: 200 }, { seed });
    const place = memoryPlace();
    let refused = 0;
    for (let k = 0; k < 500; k++) {
      try {
        setNow(store, time, key(k), value(10, k));
      } catch {
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(5);
    await new SnapshotKeeper(store, parts(place)).save();
    const next = (hashSeed: number) => {
      const geometry = { ...store.geometry, seed: hashSeed };
      return new KvStore({
        nowNs: time.nowNs,
        random: new SeededRandom(seed).stream('next'),
        region: Buffer.alloc(store.region.length),
        geometry,
        eviction: 'none',
      });
    };
    const same = next(store.geometry.seed);
    await restore(same, await place.load(), parts(place));
    expect(same.size).toBe(store.size);
    // By another hash they have no room.
    const other = restore(next(store.geometry.seed + 1), await place.load(), parts(place));
    await expect(other).rejects.toMatchObject({ code: 'ERR_ROCE_LIMIT' });
  });

  it('leaves out what has expired, also while there was no owner', async () => {
    const { store, clock: time } = smallStore();
    const place = memoryPlace();
    const keeper = new SnapshotKeeper(store, { ...parts(place), clock: time });
    setNow(store, time, key('gone'), value(3, 'a'), 10);
    setNow(store, time, key('goes'), value(3, 'b'), 500);
    setNow(store, time, key('stays'), value(3, 'c'), 5000);
    time.timeNs += 20e6;
    await keeper.save();
    const next = smallStore();
    await restore(next.store, await place.load(), parts(place, 1.7e12 + 1000));
    expect([...next.store.records()].map((one) => one.key.toString())).toEqual(['key stays']);
    next.clock.timeNs += 4e9;
    expect(next.store.get(key('stays'))).toBeUndefined();
  });

  it('writes when something has changed, and at the end', async () => {
    const { store, clock: time } = smallStore();
    const place = memoryPlace();
    const keeper = new SnapshotKeeper(store, parts(place));
    keeper.start();
    const tick = async () => {
      clock.wake!();
      await settled();
      return place.saves;
    };
    expect(await tick()).toBe(0);
    setNow(store, time, key(1), value(3, 'a'));
    expect(await tick()).toBe(1);
    expect(await tick()).toBe(1);
    store.delete(key(1));
    await keeper.close();
    expect(place.saves).toBe(2);
    expect(clock.wake).toBeUndefined();
  });

  it.each([
    ['a warning of the process', 'the disk is full'],
    ['a notice', 'the snapshot was not saved: the disk is full'],
  ])('that cannot write goes on, and says so once, by %s', async (kind, text) => {
    const { store, clock: time } = smallStore();
    const place = memoryPlace();
    const warnings: string[] = [];
    const keeper = new SnapshotKeeper(store, {
      ...parts(place),
      place: { ...place, save: async () => Promise.reject(new Error('the disk is full')) },
      onNotice: kind === 'a notice' ? (notice) => warnings.push(notice) : undefined,
    });
    keeper.start();
    const onWarning = ({ message }: Error) => warnings.push(message);
    process.on('warning', onWarning);
    for (let k = 0; k < 3; k++) {
      setNow(store, time, key(k), value(3, 'a'));
      clock.wake!();
      await settled();
    }
    await settled();
    process.off('warning', onWarning);
    expect(warnings).toEqual([text]);
    await expect(keeper.save()).rejects.toThrow('the disk is full');
    await expect(keeper.close()).rejects.toThrow('the disk is full');
  });
});

describe('the file of a snapshot', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'rocev2-snapshot-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const load = async (file: SnapshotFile) => {
    const records: KvRecord[] = [];
    const snapshot = await file.load();
    if (snapshot !== undefined) for await (const one of snapshot.records) records.push(one);
    return records;
  };

  it('is empty before it is there, then what was saved last', async () => {
    const file = new SnapshotFile(join(folder, 'kv'));
    expect(await load(file)).toEqual([]);
    await file.save(encodeSnapshot(RECORDS, TABLE, TIME));
    await file.save(encodeSnapshot([RECORDS[0]], TABLE, TIME));
    expect(await load(file)).toEqual([RECORDS[0]]);
  });

  it('that another program has made, or that is damaged, is refused by name and left as it is', async () => {
    const path = join(folder, 'kv');
    for (const bytes of [Buffer.from('{"a":1}'), Buffer.alloc(0), BYTES.subarray(0, -5)]) {
      writeFileSync(path, bytes);
      await expect(load(new SnapshotFile(path))).rejects.toThrow(`cannot load the snapshot ${path}: it is`);
      expect(readFileSync(path)).toEqual(bytes);
    }
  });

  it.runIf(process.platform === 'linux')(
    'is refused while another owner has it, also one that writes its first',
    async () => {
      const path = join(folder, 'kv');
      await using first = new SnapshotFile(path);
      expect(await load(first)).toEqual([]);
      await expect(load(new SnapshotFile(path))).rejects.toMatchObject({ code: 'ERR_ROCE_BUSY' }); // No file yet.
      await first.save([BYTES]);
      const second = new SnapshotFile(path);
      await expect(load(second)).rejects.toMatchObject({ code: 'ERR_ROCE_BUSY', message: /another owner has it/ });
      await expect(second.save([BYTES])).rejects.toMatchObject({ code: 'ERR_ROCE_MISMATCH' });
      await first.save(encodeSnapshot([RECORDS[0]], TABLE, TIME)); // The lock goes over to the new file.
      await expect(load(second)).rejects.toMatchObject({ code: 'ERR_ROCE_BUSY' });
      await first.close();
      expect(await load(second)).toEqual([RECORDS[0]]);
      await second.close();
      expect(readdirSync(folder)).toEqual(['kv']);
    },
  );

  it('is not replaced where another file was put in its place, such as a backup', async () => {
    const path = join(folder, 'kv');
    await using file = new SnapshotFile(path);
    await file.save([BYTES]);
    copyFileSync(path, `${path}.backup`);
    await file.save(encodeSnapshot([], TABLE, TIME));
    renameSync(`${path}.backup`, path);
    await expect(file.save(encodeSnapshot([], TABLE, TIME))).rejects.toMatchObject({
      code: 'ERR_ROCE_MISMATCH',
      message: /another file was put in its place/,
    });
    expect(readFileSync(path)).toEqual(BYTES);
    rmSync(path);
    await file.save(encodeSnapshot([RECORDS[2]], TABLE, TIME)); // Moved away: it writes its own again.
    await file.close();
    await using next = new SnapshotFile(path);
    expect(await load(next)).toEqual([RECORDS[2]]);
  });

  it('that is copied while its owner runs is one moment: what has opened it reads it whole', async () => {
    const path = join(folder, 'kv');
    await using file = new SnapshotFile(path);
    await file.save([BYTES]);
    const copying = await open(path, 'r');
    const half = Buffer.alloc(BYTES.length >> 1);
    await copying.read(half, 0, half.length, null);
    for (let k = 0; k < 3; k++) await file.save(encodeSnapshot([RECORDS[k]], TABLE, TIME));
    const rest = await copying.readFile();
    await copying.close();
    expect(Buffer.concat([half, rest])).toEqual(BYTES);
  });

  it('is written over the rest of a draft whose owner was killed', async () => {
    const path = join(folder, 'kv');
    writeFileSync(`${path}.new`, Buffer.alloc(100_000, 'x'));
    await using file = new SnapshotFile(path);
    await file.save([BYTES]);
    expect(readFileSync(path)).toEqual(BYTES);
  });

  it('that cannot be read or written is named with the reason', async () => {
    await expect(load(new SnapshotFile(folder))).rejects.toThrow('it is a directory');
    const nowhere = new SnapshotFile(join(folder, 'none', 'kv'));
    await expect(nowhere.save([BYTES])).rejects.toMatchObject({
      code: 'ERR_ROCE_IO',
      message: /there is no such folder/,
    });
  });
});
