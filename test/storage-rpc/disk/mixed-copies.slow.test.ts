/**
 * Data and checksums of a disk from different moments, as after half of a backup was restored: every combination of the
 * states of a small history. A read returns what the newer of the two files says, or fails; it never returns what was
 * there before, and what is reported to be zeros is.
 */

import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MAP_OFFSET, REGION_BLOCKS, TABLE_OFFSET } from '../../../src/storage-rpc/disk/checksum-format.js';
import { FileDevice } from '../../../src/storage-rpc/disk/file-device.js';
import { eventually } from '../../support/eventually.js';

const BLOCK = 4096;
/** The first blocks of two regions: what the history writes. */
const BLOCKS = [0, REGION_BLOCKS];
const SIZE = (REGION_BLOCKS + 1) * BLOCK;

/** What the two files have where the history writes; the rest is holes. */
interface State {
  readonly name: string;
  /** First byte of each block, as a reader sees it. */
  readonly values: readonly number[];
  readonly data: ReadonlyMap<number, Buffer>;
  readonly sums: ReadonlyMap<number, Buffer>;
}

const DATA_PLACES = BLOCKS.map((block) => [block * BLOCK, BLOCK] as const);
const SUMS_PLACES = [[0, MAP_OFFSET + 16] as const, ...BLOCKS.map((block) => [TABLE_OFFSET + block * 8, 8] as const)];

let folder: string;
let path: string;
const states: State[] = [];

async function piecesOf(file: string, places: ReadonlyArray<readonly [number, number]>): Promise<Map<number, Buffer>> {
  await using handle = await open(file, 'r');
  const pieces = new Map<number, Buffer>();
  for (const [at, length] of places) {
    const bytes = Buffer.alloc(length);
    await handle.read(bytes, 0, length, at);
    pieces.set(at, bytes);
  }
  return pieces;
}

async function put(file: string, sizeBytes: number, pieces: ReadonlyMap<number, Buffer>): Promise<void> {
  await using handle: FileHandle = await open(file, 'w');
  await handle.truncate(sizeBytes);
  for (const [at, bytes] of pieces) await handle.write(bytes, 0, bytes.length, at);
}

async function hasOneValue(block: number): Promise<boolean> {
  const [entry] = (await piecesOf(`${path}.crc32c`, [[TABLE_OFFSET + block * 8, 8]])).values();
  return entry.readUInt32LE(0) === entry.readUInt32LE(4);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rocev2-mixed-'));
  path = join(folder, 'disk');
  const values = [0, 0];
  const keep = async (name: string) => {
    const data = await piecesOf(path, DATA_PLACES);
    states.push({ name, values: [...values], data, sums: await piecesOf(`${path}.crc32c`, SUMS_PLACES) });
  };
  let disk = await FileDevice.open({ path, sizeBytes: SIZE });
  const write = async (which: number, value: number) => {
    await disk.write(BLOCKS[which] * BLOCK, Buffer.alloc(BLOCK, value));
    values[which] = value;
    await keep(`wrote ${value}`);
    await disk.flush();
    await eventually(() => hasOneValue(BLOCKS[which])); // The older one leaves the file after the flush.
    await keep(`flushed ${value}`);
  };
  await keep('made');
  await write(0, 1);
  await write(0, 2);
  await write(1, 3);
  await disk.trim(0, BLOCK);
  values[0] = 0;
  await disk.flush();
  await eventually(() => hasOneValue(BLOCKS[0]));
  await keep('trimmed');
  await disk.close();
  await keep('closed');
  disk = await FileDevice.open({ path });
  await write(0, 4);
  await write(1, 5);
  await disk.close();
  await keep('closed again');
});
afterAll(() => rm(folder, { recursive: true }));

/** `undefined`: it fails. */
async function valueAt(disk: FileDevice, which: number): Promise<number | undefined> {
  const bytes = Buffer.alloc(BLOCK);
  try {
    await disk.read(BLOCKS[which] * BLOCK, BLOCK, bytes);
    expect(bytes.every((byte) => byte === bytes[0])).toBe(true);
    return bytes[0];
  } catch (error) {
    expect(error).toMatchObject({ errno: 'EIO' });
    return undefined;
  }
}

/** What is wrong with the disk of these two files. `isLarge`: zeros of the first region, which may be read, count, too. */
async function problemsOf(data: State, sums: State, isLarge = false): Promise<string[]> {
  await put(path, SIZE, data.data);
  await put(`${path}.crc32c`, TABLE_OFFSET + (SIZE / BLOCK) * 8, sums.sums);
  let disk: FileDevice;
  try {
    disk = await FileDevice.open({ path });
  } catch {
    return [];
  }
  const newer = states.indexOf(data) > states.indexOf(sums) ? data : sums;
  // A write that was not flushed may be lost.
  const flushed = sums.name.startsWith('wrote') ? states[states.indexOf(sums) - 1] : sums;
  const problems: string[] = [];
  for (const which of [0, 1]) {
    const value = await valueAt(disk, which);
    const isLost = newer === sums && value === flushed.values[which];
    if (value !== undefined && value !== newer.values[which] && !isLost)
      problems.push(`block ${which} reads as ${value}`);
    if (which === 0 && !isLarge) continue;
    const [{ zero }] = await disk.blockStatus(BLOCKS[which] * BLOCK, BLOCK);
    if (zero && value !== 0) problems.push(`block ${which} is said to be zeros`);
  }
  await disk.close();
  return problems;
}

describe('data and checksums', () => {
  it('of one moment are what the disk had then, also if it was not closed', async () => {
    for (const state of states) {
      expect(await problemsOf(state, state), state.name).toEqual([]);
      const disk = await FileDevice.open({ path });
      expect([await valueAt(disk, 0), await valueAt(disk, 1)], state.name).toEqual(state.values);
      await disk.close();
    }
  });

  it('of different moments never give an older value', async () => {
    const found: string[] = [];
    for (const [k, data] of states.entries())
      for (const sums of states)
        for (const problem of await problemsOf(data, sums, sums.name === 'made' && k % 4 === 1))
          found.push(`data '${data.name}', checksums '${sums.name}': ${problem}`);
    expect(states.length).toBe(14);
    expect(found).toEqual([]);
  });
});
