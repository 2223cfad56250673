/** Reservations in a file: the next target has them. */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ReservationFile } from '../src/live/reservation-file.js';
import { NQN } from './world.js';

const HOST = '01'.repeat(16);
const STATE = { registrants: [[HOST, 2n ** 64n - 1n]] as const, type: 1, holder: HOST };

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rocev2-reservations-'));
  path = join(folder, 'reservations.json');
});
afterEach(() => rmSync(folder, { recursive: true }));

it('what is saved is there for the next target, of this namespace and no other', async () => {
  const file = await ReservationFile.open(path);
  expect(file.storeOf(NQN, 1).initial).toBeUndefined();
  await file.storeOf(NQN, 1).save(STATE);
  const again = await ReservationFile.open(path);
  expect(again.storeOf(NQN, 1).initial).toEqual(STATE);
  expect(again.storeOf(NQN, 2).initial).toBeUndefined();
  await again.storeOf(NQN, 1).save(undefined);
  expect((await ReservationFile.open(path)).storeOf(NQN, 1).initial).toBeUndefined();
});

it('saves that come together end with the last', async () => {
  const store = (await ReservationFile.open(path)).storeOf(NQN, 1);
  await Promise.all([1, 2, 3, 4, 5, 6].map((type) => store.save({ ...STATE, type })));
  expect((await ReservationFile.open(path)).storeOf(NQN, 1).initial?.type).toBe(6);
});

it('nothing that is to be kept makes no file', async () => {
  await (await ReservationFile.open(path)).storeOf(NQN, 1).save(undefined);
  expect(() => readFileSync(path)).toThrow('ENOENT');
});

it.each([
  '',
  '{}',
  '{"version":2,"namespaces":{}}',
  '{"version":1,"namespaces":{"x":{}}}',
  `{"version":1,"namespaces":{"x":{"registrants":[["${HOST}","0"]],"type":1}}}`,
  `{"version":1,"namespaces":{"x":{"registrants":[["zz","1"]],"type":1}}}`,
  `{"version":1,"namespaces":{"x":{"registrants":[],"type":9}}}`,
  `{"version":1,"namespaces":{"x":{"registrants":[],"type":1,"holder":"${HOST}"}}}`,
])('%j is no such file, and is left alone', async (text) => {
  writeFileSync(path, text);
  await expect(ReservationFile.open(path)).rejects.toMatchObject({ code: 'ERR_ROCE_MALFORMED' });
  expect(readFileSync(path, 'utf8')).toBe(text);
});

it('a file that cannot be written fails the command that wanted it', async () => {
  const gone = join(folder, 'gone');
  await expect(ReservationFile.open(join(gone, 'file'))).rejects.toMatchObject({ code: 'ERR_ROCE_IO' });
  mkdirSync(gone);
  const file = await ReservationFile.open(join(gone, 'file'));
  rmSync(gone, { recursive: true });
  await expect(file.storeOf(NQN, 1).save(STATE)).rejects.toMatchObject({ code: 'ERR_ROCE_IO' });
});
