/** The file of a journal on a real file system: made, kept for one process, and removed only by who has made it. */

import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HAS_KOFFI } from '../../../test/support/has-koffi.js';
import { JournalFile } from '../src/live/journal-file.js';

const BYTES = 1 << 20;

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rocev2-journal-'));
  path = join(folder, 'journal');
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('the file of a journal', () => {
  it('is made of zeros, and goes again if nothing was written', async () => {
    const file = await JournalFile.open(path, BYTES);
    expect(await file.size()).toBe(BYTES);
    expect((await file.read(0, BYTES)).every((byte) => byte === 0)).toBe(true);
    await file.close();
    expect(existsSync(path)).toBe(false);
  });

  it('stays if something was written', async () => {
    const file = await JournalFile.open(path, BYTES);
    await file.write(4096, Buffer.from('frame'));
    await file.close();
    await using again = await JournalFile.open(path);
    expect((await again.read(4096, 5)).toString()).toBe('frame');
  });

  it('is refused if it is too small, and left as it was', async () => {
    writeFileSync(path, 'a letter');
    await expect(JournalFile.open(path)).rejects.toMatchObject({ code: 'ERR_ROCE_OUT_OF_RANGE' });
    expect(statSync(path).size).toBe(8);
  });

  it.runIf(HAS_KOFFI)('belongs to one at a time, also where two make it at once', async () => {
    let opened = 0;
    for (let round = 0; round < 20; round++) {
      const path = join(folder, `${round}`);
      const both = await Promise.allSettled([JournalFile.open(path, BYTES), JournalFile.open(path, BYTES)]);
      const files = both.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      expect(files.length).toBeLessThan(2);
      for (const file of files) {
        opened++;
        expect(existsSync(path), `round ${round}`).toBe(true); // Whoever came too late has not taken it away.
        await expect(JournalFile.open(path)).rejects.toThrow(/another process uses the journal/);
        await file.close();
      }
    }
    expect(opened).toBeGreaterThan(0);
  });
});
