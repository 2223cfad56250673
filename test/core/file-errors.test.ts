import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { whyUnreadable, whyUnwritable } from '../../src/core/file-errors.js';

describe('errors of the system about files, in words', () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'file-errors-'));
    writeFileSync(join(folder, 'file'), '');
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each([
    ['none', 'there is no such file'],
    ['.', 'it is a directory'],
    ['file/x', 'it is not a directory'],
  ])('reading %s: %s', async (path, words) => {
    const error = await readFile(join(folder, path)).catch((cause: unknown) => cause);
    expect(whyUnreadable(error)).toBe(words);
  });

  it.each([
    ['none/x', 'there is no such folder'],
    ['.', 'it is a directory'],
    ['file/x', 'it is not a directory'],
  ])('writing %s: %s', async (path, words) => {
    const error = await writeFile(join(folder, path), '').catch((cause: unknown) => cause);
    expect(whyUnwritable(error)).toBe(words);
  });

  it('other errors keep their own words', () => {
    expect(whyUnreadable(new Error('the cable burns'))).toBe('the cable burns');
    expect(whyUnwritable('a text')).toBe('a text');
  });
});
