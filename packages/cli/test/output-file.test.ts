import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { checkWritable } from '../../command/src/output-file.js';
import { run } from './run-in-process.js';

it.each([
  ['sim', 'run', 'dcqcn-n64-4us', '--report'],
  ['sim', 'run', 'dcqcn-n64-4us', '--plot'],
  ['fluid', 'dcqcn', '--plot'],
])('%s %s: a file that cannot be written is refused before the work', async (...args) => {
  const { exitCode, stdout, stderr } = await run([...args, '/nonexistent/file', '--json']);
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toMatch(/^rocev2: cannot write \/nonexistent\/file: there is no such folder/);
  expect(stderr).not.toMatch(/virtual time/);
});

it('what a file holds stays while it is asked, and no empty one is left', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rocev2-output-'));
  const path = join(folder, 'report.html');
  await writeFile(path, 'kept');
  await checkWritable(path);
  expect(await readFile(path, 'utf8')).toBe('kept');
  await checkWritable(join(folder, 'new.html'));
  expect(await readdir(folder)).toEqual(['report.html']);
  await rm(folder, { recursive: true });
});
