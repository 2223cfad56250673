/**
 * What is left of a disk in a file when its process is killed, or the power fails, between any two of its calls to the system. The calls of a run
 * are recorded; files as a crash would leave them are made of the record, and opened.
 *
 * After a kill the files are as after the last call. After a loss of power what a sync had covered is there; of anything later each sector of
 * 512 bytes may be there or not, whatever became of the others.
 */

import { fstatSync, statSync } from 'node:fs';
import { type FileHandle, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type RandomSource, randomInt, SeededRandom } from '../../../src/core/random.js';
import { FileDevice } from '../../../src/storage-rpc/disk/file-device.js';
import { repetitions } from '../../support/repetitions.js';

const BLOCK = 4096;
const BLOCKS = 8;
const SECTOR = 512;
const WRITES = repetitions(14, 40);
const POWER_SEEDS = repetitions(1, 2);
const NAMES = ['disk', 'disk.crc32c'] as const;
type Name = (typeof NAMES)[number];

type Call =
  | { readonly name: Name; readonly at: number; readonly bytes: Buffer }
  | { readonly name: Name; readonly length: number }
  /** Of the calls before it `covers` are as durable as a file system makes them. */
  | { readonly name: Name; readonly covers: number };

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rocev2-crash-'));
});
afterEach(() => rm(folder, { recursive: true }));

type Files = ReadonlyMap<Name, Buffer>;
const NOTHING: Files = new Map(NAMES.map((name) => [name, Buffer.alloc(0)]));

interface Calls {
  write(bytes: Uint8Array, offset: number, length: number, at: number): Promise<unknown>;
  truncate(length: number): Promise<void>;
  datasync(): Promise<void>;
  sync(): Promise<void>;
}

/** Records what is done to the two files of `path` until `stop`. */
async function record(path: string) {
  const calls: Call[] = [];
  let failing: Name | undefined;
  const handle = await open(folder, 'r');
  const prototype = Object.getPrototypeOf(handle) as Calls;
  await handle.close();
  const { write, truncate, datasync, sync } = prototype;
  const nameOf = (fd: number): Name | undefined => {
    const { ino } = fstatSync(fd);
    return NAMES.find((_, i) => statSync(i === 0 ? path : `${path}.crc32c`, { throwIfNoEntry: false })?.ino === ino);
  };
  const synced = (call: () => Promise<void>) =>
    async function (this: FileHandle): Promise<void> {
      const name = nameOf(this.fd);
      const covers = calls.length;
      await call.call(this);
      if (name !== undefined) calls.push({ name, covers });
    };
  prototype.write = async function (this: FileHandle, bytes, offset, length, at) {
    const name = nameOf(this.fd);
    if (name !== undefined && name === failing)
      throw Object.assign(new Error('EIO: no'), { code: 'EIO', syscall: 'write' });
    const written = Buffer.from(bytes.subarray(offset, offset + length));
    const result = await write.call(this, bytes, offset, length, at);
    if (name !== undefined) calls.push({ name, at, bytes: written });
    return result;
  };
  prototype.truncate = async function (this: FileHandle, length) {
    const name = nameOf(this.fd);
    await truncate.call(this, length);
    if (name !== undefined) calls.push({ name, length });
  };
  prototype.datasync = synced(datasync);
  prototype.sync = synced(sync);
  return {
    calls,
    failWritesOf: (name: Name | undefined) => {
      failing = name;
    },
    stop: () => void Object.assign(prototype, { write, truncate, datasync, sync }),
  };
}

function resized(file: Buffer, length: number): Buffer {
  return length <= file.length ? file.subarray(0, length) : Buffer.concat([file, Buffer.alloc(length - file.length)]);
}

/** The files after so many calls; with `lossy` after a loss of power. */
function filesAfter(calls: readonly Call[], count: number, initial: Files, lossy?: RandomSource): Files {
  const files = new Map(initial);
  const durable = new Map<Name, number>();
  for (const call of calls.slice(0, count)) if ('covers' in call) durable.set(call.name, call.covers);
  const survives = (index: number, name: Name) =>
    lossy === undefined || index < (durable.get(name) ?? 0) || randomInt(lossy, 0, 1) === 1;
  calls.slice(0, count).forEach((call, index) => {
    const file = files.get(call.name)!;
    if ('length' in call) {
      if (survives(index, call.name)) files.set(call.name, Buffer.from(resized(file, call.length)));
    } else if ('bytes' in call) {
      const { at, bytes } = call;
      let target = file;
      for (let done = 0; done < bytes.length; ) {
        const step = Math.min(bytes.length - done, SECTOR - ((at + done) % SECTOR));
        if (survives(index, call.name)) {
          if (target.length < at + done + step) target = Buffer.from(resized(target, at + done + step));
          bytes.copy(target, at + done, done, done + step);
        }
        done += step;
      }
      files.set(call.name, target);
    }
  });
  return files;
}

/** What each block holds: the byte it was filled with, or the error of reading it. */
async function contentsOf(files: Files, create = false): Promise<Array<number | string>> {
  const path = join(folder, 'left');
  for (const [i, name] of NAMES.entries()) {
    const file = i === 0 ? path : `${path}.crc32c`;
    await rm(file, { force: true });
    if (files.get(name)!.length > 0) await writeFile(file, files.get(name)!);
  }
  const disk = await FileDevice.open({ path, sizeBytes: BLOCKS * BLOCK, create });
  const contents: Array<number | string> = [];
  for (let block = 0; block < BLOCKS; block++) {
    const bytes = Buffer.alloc(BLOCK);
    try {
      await disk.read(block * BLOCK, BLOCK, bytes);
      contents.push(bytes.every((byte) => byte === bytes[0]) ? bytes[0] : 'torn');
    } catch (error) {
      contents.push((error as { errno: string }).errno);
    }
  }
  await disk.close();
  return contents;
}

const IMAGE = Buffer.concat(Array.from({ length: BLOCKS }, (_, block) => Buffer.alloc(BLOCK, 200 + block)));

/** The checksums of a disk that held that image. */
async function checksumsOfImage(): Promise<Buffer> {
  const path = join(folder, 'other');
  await writeFile(path, IMAGE);
  await (await FileDevice.open({ path })).close();
  return readFile(`${path}.crc32c`);
}

test.each([
  ['a new disk', Buffer.alloc(0), false],
  ['a new disk where an older one has left its checksums', Buffer.alloc(0), true],
  ['an image', IMAGE, false],
])(
  'while %s is being opened, nothing that happens makes the next process find it otherwise',
  async (_, data, leftovers) => {
    const path = join(folder, 'disk');
    const initial = new Map([...NOTHING, ['disk', data] as const]);
    if (leftovers) initial.set('disk.crc32c', await checksumsOfImage());
    for (const [name, bytes] of initial) await writeFile(join(folder, name), bytes);
    const recorder = await record(path);
    await (await FileDevice.open({ path, sizeBytes: BLOCKS * BLOCK, create: leftovers })).close();
    recorder.stop();
    const expected = Array.from({ length: BLOCKS }, (_, block) => (data.length > 0 ? 200 + block : 0));
    for (let count = 0; count <= recorder.calls.length; count++) {
      for (const lossy of [undefined, new SeededRandom(count).stream('loss')]) {
        const left = filesAfter(recorder.calls, count, initial, lossy);
        // Until the data has its size, the next process, too, has to be told that the older checksums do not count.
        const create = leftovers && left.get('disk')!.length === 0;
        expect(await contentsOf(left, create), `after ${count} calls`).toEqual(expected);
      }
    }
  },
);

test('a write that failed, then one that was killed: the block is as before, or as it was to be', async () => {
  const path = join(folder, 'disk');
  const disk = await FileDevice.open({ path, sizeBytes: BLOCKS * BLOCK });
  await disk.write(0, Buffer.alloc(BLOCK, 1));
  const initial = new Map<Name, Buffer>();
  for (const name of NAMES) initial.set(name, await readFile(join(folder, name)));
  const recorder = await record(path);
  recorder.failWritesOf('disk');
  await expect(disk.write(0, Buffer.alloc(BLOCK, 2))).rejects.toMatchObject({ errno: 'EIO' });
  recorder.failWritesOf(undefined);
  await disk.write(0, Buffer.alloc(BLOCK, 3));
  recorder.stop();
  await disk.close();
  const seen = new Set<number | string>();
  for (let count = 0; count <= recorder.calls.length; count++) {
    seen.add((await contentsOf(filesAfter(recorder.calls, count, initial)))[0]);
  }
  expect([...seen]).toEqual([1, 3]);
});

/** Fills blocks again and again, at times with FUA, at times followed by FLUSH; keeps what was promised when. */
async function runDisk(path: string, random: RandomSource) {
  const recorder = await record(path);
  const { calls } = recorder;
  const disk = await FileDevice.open({ path, sizeBytes: BLOCKS * BLOCK });
  const opened = calls.length;
  /** By block: its values in order, with the calls there had been when each was begun, done, and flushed. */
  const history = Array.from({ length: BLOCKS }, () => [{ value: 0, begun: 0, done: 0, durable: 0 }]);
  const everything = () => history.flat();
  for (let value = 1; value <= WRITES; value++) {
    const fua = randomInt(random, 0, 5) === 0;
    const entries = Array.from({ length: randomInt(random, 1, 3) }, () => {
      const block = randomInt(random, 0, BLOCKS - 1);
      const entry = { value, begun: calls.length, done: Number.POSITIVE_INFINITY, durable: Number.POSITIVE_INFINITY };
      return { block, entry };
    }).filter(({ block }, i, all) => all.findIndex((other) => other.block === block) === i);
    await Promise.all(
      entries.map(async ({ block, entry }) => {
        history[block].push(entry);
        await disk.write(block * BLOCK, Buffer.alloc(BLOCK, value), { fua });
        entry.done = calls.length;
        if (fua) entry.durable = calls.length;
      }),
    );
    if (randomInt(random, 0, 4) > 0) continue;
    const covered = everything().filter(({ done }) => done < Number.POSITIVE_INFINITY);
    await disk.flush();
    for (const entry of covered) entry.durable = Math.min(entry.durable, calls.length);
  }
  await disk.close();
  recorder.stop();
  return { calls, opened, history };
}

test('killed at any moment: every block is as it was written last, or as it was being written', async () => {
  const { calls, opened, history } = await runDisk(join(folder, 'disk'), new SeededRandom(1).stream('run'));
  for (let count = opened; count <= calls.length; count++) {
    const contents = await contentsOf(filesAfter(calls, count, NOTHING));
    contents.forEach((content, block) => {
      const last = history[block].findLastIndex(({ done }) => done <= count);
      const allowed = history[block].slice(last).filter(({ begun }) => begun <= count);
      expect(
        allowed.map(({ value }) => value),
        `block ${block} after ${count} calls`,
      ).toContain(content);
    });
  }
}, 60_000);

test('without power at any moment: what was flushed, or written with FUA, is there unless something newer is', async () => {
  for (let seed = 1; seed <= POWER_SEEDS; seed++) {
    const path = join(folder, `disk-${seed}`);
    const random = new SeededRandom(seed).stream('run');
    const { calls, opened, history } = await runDisk(path, random);
    for (let count = opened; count <= calls.length; count++) {
      const contents = await contentsOf(filesAfter(calls, count, NOTHING, random));
      contents.forEach((content, block) => {
        const last = history[block].findLastIndex(({ durable }) => durable <= count);
        const allowed = history[block].slice(last).filter(({ begun }) => begun <= count);
        // A block that was being changed may be lost, and is known to be.
        if (allowed.length > 1 && content === 'EIO') return;
        expect(
          allowed.map(({ value }) => value),
          `seed ${seed}, block ${block}, ${count} calls`,
        ).toContain(content);
      });
    }
  }
}, 60_000);
