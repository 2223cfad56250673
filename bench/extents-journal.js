// @ts-check
/**
 * What an append costs one extent node with and without a journal, interleaved: records of 4 KiB to 1, 4 and 16 open extents, one append under way for each of them. p50 and p99 of an append, appends a
 * second, and calls of fdatasync for each append while they run, those of checkpoints then among them. It is the store of a node alone: no network, no manager.
 *
 *   node bench/extents-journal.js [--dir FOLDER] [--journal-dir FOLDER] [--reps 3] [--appends 400] [--json]
 */

import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { ExtentStore } from '../build/packages/extents/src/extent-store.js';
import { FolderFiles } from '../build/packages/extents/src/live/folder-files.js';
import { JournalFile } from '../build/packages/extents/src/live/journal-file.js';
import { encodeRecord } from '../build/packages/extents/src/record.js';
import { SYSTEM_CLOCK } from '../build/src/driver/system-clock.js';
import { systemRandom } from '../build/src/driver/system-random.js';

const BYTES = 4096;
const EXTENTS = [1, 4, 16];
/** Appends to each extent before the measurement. */
const WARM_UP = 100;

const { values } = parseArgs({
  options: {
    dir: { type: 'string', default: os.tmpdir() },
    'journal-dir': { type: 'string' },
    reps: { type: 'string', default: '3' },
    appends: { type: 'string', default: '400' },
    json: { type: 'boolean', default: false },
  },
});
const appends = Number(values.appends);

/** @typedef {import('../build/packages/extents/src/extent-files.js').ExtentFile} ExtentFile */
/** @typedef {{ extents: number, hasJournal: boolean, ms: number[], syncs: number, appends: number, seconds: number }} Row */

/** @type {Row[]} */
const rows = EXTENTS.flatMap((extents) =>
  [false, true].map((hasJournal) => ({ extents, hasJournal, ms: [], syncs: 0, appends: 0, seconds: 0 })),
);
for (let rep = 0; rep < Number(values.reps); rep++)
  for (const row of rep % 2 === 0 ? rows : rows.toReversed()) await measure(row);

/** One node with new files. @param {Row} row */
async function measure(row) {
  const folder = mkdtempSync(join(values.dir, 'rocev2-bench-'));
  const journalFolder = mkdtempSync(join(values['journal-dir'] ?? values.dir, 'rocev2-bench-'));
  let syncs = 0;
  /** @param {ExtentFile} file @returns {ExtentFile} */
  const counting = (file) => ({
    size: () => file.size(),
    read: (offset, length) => file.read(offset, length),
    write: (offset, bytes) => file.write(offset, bytes),
    sync: () => {
      syncs++;
      return file.sync();
    },
    truncate: (length) => file.truncate(length),
    close: () => file.close(),
  });
  const files = await FolderFiles.open(join(folder, 'node'));
  const journal = row.hasJournal ? await JournalFile.open(join(journalFolder, 'journal')) : undefined;
  const store = await ExtentStore.open(
    {
      list: () => files.list(),
      create: async (name) => counting(await files.create(name)),
      open: async (name) => counting(await files.open(name)),
      remove: (name) => files.remove(name),
      rename: (name, to) => files.rename(name, to),
      freeBytes: () => files.freeBytes(),
    },
    async () => ({ node: 1, cluster: 'bench' }),
    journal && { file: counting(journal), clock: SYSTEM_CLOCK, random: systemRandom() },
  );
  const data = Buffer.alloc(BYTES, 7);
  const offsets = new Array(row.extents).fill(0);
  for (let extent = 0; extent < row.extents; extent++) await store.create(extent, 1);
  /** @param {number} extent @param {number} count @param {number[]} ms */
  const lane = async (extent, count, ms) => {
    for (let k = 0; k < count; k++) {
      const offset = offsets[extent];
      const record = encodeRecord({ extent, offset, writer: 1, sequence: offset, committed: offset }, data);
      const startMs = performance.now();
      await store.append(extent, 1, { offset, record });
      ms.push(performance.now() - startMs);
      offsets[extent] += record.length;
    }
  };
  const each = Math.ceil(appends / row.extents);
  const lanes = (/** @type {number} */ count, /** @type {number[]} */ ms) =>
    Promise.all(offsets.map((_, extent) => lane(extent, count, ms)));
  await lanes(Math.ceil(WARM_UP / row.extents), []);
  const [syncsBefore, startMs] = [syncs, performance.now()];
  await lanes(each, row.ms);
  row.seconds += (performance.now() - startMs) / 1000;
  row.syncs += syncs - syncsBefore;
  row.appends += each * row.extents;
  await store.close();
  await journal?.close();
  await files.close();
  for (const one of [folder, journalFolder]) rmSync(one, { recursive: true });
}

const quantile = (/** @type {number[]} */ numbers, /** @type {number} */ share) =>
  numbers.toSorted((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(share * numbers.length))];

const results = rows.map(({ extents, hasJournal, ms, syncs, appends: count, seconds }) => ({
  extents,
  journal: hasJournal,
  p50Ms: quantile(ms, 0.5),
  p99Ms: quantile(ms, 0.99),
  perSecond: count / seconds,
  syncsPerAppend: syncs / count,
}));
if (values.json) process.stdout.write(`${JSON.stringify(results)}\n`);
else
  for (const { extents, journal, p50Ms, p99Ms, perSecond, syncsPerAppend } of results)
    process.stdout.write(
      `${String(extents).padStart(2)} extents, ${journal ? 'journal   ' : 'no journal'}: p50 ${p50Ms.toFixed(3)} ms, p99 ${p99Ms.toFixed(2)} ms, ${perSecond.toFixed(0)} appends/s, ${syncsPerAppend.toFixed(2)} fdatasync an append\n`,
    );
