/** Other runtimes than Node.js: Bun runs a NIC, Deno is refused in one line. `BUN` and `DENO` name executables that are not in PATH. */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { refuseForeignRuntime, whyNoLoopPoll } from '../../src/driver/js-runtime.js';
import { isBuilt } from '../e2e/executable.js';

const PROGRAM = 'test/e2e/fixtures/hello.mjs';

function executable(name: string): string | undefined {
  const given = process.env[name.toUpperCase()];
  const paths = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, name));
  return given ?? paths.find((path) => existsSync(path));
}

async function run(file: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(file, args, { timeout: 60_000 });
  return stdout;
}

it('refuses Deno and the event loop of Bun, and nothing of Node.js', () => {
  const unsupported = expect.objectContaining({ code: 'ERR_ROCE_UNSUPPORTED' });
  expect(() => refuseForeignRuntime({ node: '22.0.0', deno: '2.9.6' })).toThrow(unsupported);
  expect(whyNoLoopPoll({ node: '22.0.0', bun: '1.4.5' })).toMatch(/Bun/);
  expect(() => refuseForeignRuntime()).not.toThrow();
  expect(whyNoLoopPoll()).toBeUndefined();
});

describe.runIf(isBuilt)('a program with two devices', () => {
  const bun = executable('bun');
  const deno = executable('deno');

  it('says hello under Node.js', { timeout: 60_000 }, async () => {
    expect(await run(process.execPath, PROGRAM, '{}')).toBe('hello\n');
  });

  it.skipIf(bun === undefined).each(['{}', '{"io":"auto"}', '{"engine":"worker"}'])(
    'says hello under Bun (skipped without bun): %s',
    async (options) => {
      expect(await run(bun!, PROGRAM, options)).toBe('hello\n');
    },
    60_000,
  );

  it.skipIf(bun === undefined)(
    'is refused under Bun with batched UDP on the event loop',
    { timeout: 60_000 },
    async () => {
      expect(await run(bun!, PROGRAM, '{"io":"mmsg"}')).toMatch(/^ERR_ROCE_UNSUPPORTED.*Bun has no uv_poll/);
    },
  );

  it.skipIf(deno === undefined)('is refused under Deno (skipped without deno)', { timeout: 60_000 }, async () => {
    expect(await run(deno!, 'run', '--allow-all', PROGRAM, '{}')).toMatch(/^ERR_ROCE_UNSUPPORTED Deno/);
  });
});
