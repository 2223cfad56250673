/** Owners that are killed at any moment come back with what they had at one moment: real processes, real files. */

import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { randomInt, SeededRandom } from '../../../src/core/random.js';
import { openDevice, type RdmaDevice } from '../../../src/index.js';
import { isBuilt, type Program, rocev2Starter } from '../../../test/e2e/executable.js';
import { freePort } from '../../../test/support/free-port.js';
import { type KvClient, openKv } from '../src/index.js';

const ADDRESS = '127.0.4.7';
const KEYS = 20;
const LIVES = 5;

/** Writes numbered values, one key after another, until `count` of them are acknowledged. Resolves to the number behind the last one. */
async function write(reader: KvClient<string>, first: number, count: number): Promise<number> {
  for (let number = first; number < first + count; number++)
    await reader.set(`key ${number % KEYS}`, `${number}`.padEnd(240, '.'));
  return first + count;
}

/** The number of the last write of which the store shows the effect. Fails unless it shows those of all before it, and of none after. */
async function lastOf(reader: KvClient<string>): Promise<number> {
  const values = await reader.getMany(Array.from({ length: KEYS }, (_, k) => `key ${k}`));
  const numbers = values.map((value) => (value === undefined ? -1 : Number.parseInt(value, 10)));
  const last = Math.max(...numbers);
  const expected = numbers.map((_, k) => Math.max(-1, last - ((last - k + KEYS) % KEYS)));
  expect(numbers).toEqual(expected);
  return last;
}

describe.runIf(isBuilt)('an owner with a snapshot', () => {
  const rocev2 = rocev2Starter();
  let folder: string;
  let file: string;
  let device: RdmaDevice;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'rocev2-kv-'));
    file = join(folder, 'kv');
    device = await openDevice({ address: ADDRESS, udpPort: 0 });
  });
  afterEach(async () => {
    await device.close();
    rmSync(folder, { recursive: true });
  });

  /** So small that its log is compacted all the time. */
  async function serve(port: number): Promise<{ owner: Program; reader: KvClient<string> }> {
    const sizes = ['--memory', '128KiB', '--entries', '100', '--value-max', '256'];
    const where = ['--bind', ADDRESS, '-p', String(port), '--engine', 'inline'];
    const owner = rocev2('kv', 'serve', ...where, ...sizes, '--snapshot', file, '--every', '20ms');
    await owner.writes('stderr', /Ctrl-C ends it/);
    return { owner, reader: await openKv({ device, host: ADDRESS, port, codec: 'string' }) };
  }

  it('has after each death what one moment left, and after its end everything', async () => {
    const random = new SeededRandom(1).stream('deaths');
    const port = await freePort();
    let next = 0;
    let survived = 0;
    for (let life = 0; life < LIVES; life++) {
      const { owner, reader } = await serve(port);
      const last = await lastOf(reader);
      expect(last).toBeLessThan(next + 1); // One that was not acknowledged may have been executed.
      if (last >= 0) survived++;
      next = await write(reader, last + 1, randomInt(random, 100, 500));
      const more = write(reader, next, 1).catch(() => {});
      owner.kill('SIGKILL');
      await owner.ended();
      await more;
    }
    expect(survived).toBeGreaterThan(0);

    const { owner, reader } = await serve(port);
    next = await write(reader, (await lastOf(reader)) + 1, 30);
    owner.kill('SIGINT');
    expect(await owner.ended()).toBe(0);
    expect(await lastOf((await serve(port)).reader)).toBe(next - 1);
  });

  it('does not begin with a damaged or a foreign one, and says what to do', async () => {
    const begin = async () => {
      const owner = rocev2('kv', 'serve', '--bind', ADDRESS, '-p', '0', '--engine', 'inline', '--snapshot', file);
      return { exitCode: await owner.ended(), stderr: owner.stderr };
    };
    const port = await freePort();
    const { owner, reader } = await serve(port);
    await write(reader, 0, 30);
    owner.kill('SIGINT');
    await owner.ended();
    truncateSync(file, readFileSync(file).length - 10);
    const cut = readFileSync(file);
    expect(await begin()).toMatchObject({ stderr: expect.stringMatching(/it is damaged.*or move it away/) });
    expect(readFileSync(file)).toEqual(cut);
    writeFileSync(file, 'a text');
    const { exitCode, stderr } = await begin();
    expect(stderr).toContain(`${file}: it is not a snapshot of @rocev2/kv`);
    expect(exitCode).not.toBe(0);
  });
});
