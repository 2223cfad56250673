import { describe, expect, test } from 'vitest';
import { formatBytes } from '../../../src/core/units.js';
import { freePort } from '../../../test/support/free-port.js';
import { type CliResult, run } from '../../cli/test/run-in-process.js';

const HERE = '127.0.4.3';

/** An owner in this process, and what it printed at its end. */
async function serve(port: string): Promise<() => Promise<CliResult>> {
  const stop = new AbortController();
  let isReady = () => {};
  const ready = new Promise<void>((resolve) => {
    isReady = resolve;
  });
  const ended = run(['kv', 'serve', '--bind', HERE, '-p', port, '--engine', 'inline', '--memory', '8MiB', '--json'], {
    interrupted: stop.signal,
    onStderr: (text) => {
      if (text.includes('Ctrl-C ends it')) isReady();
    },
  });
  await Promise.race([ready, ended]);
  return () => {
    stop.abort();
    return ended;
  };
}

test('what set writes, get and list print', async () => {
  const port = String(await freePort());
  const end = await serve(port);
  const kv = (command: string, ...args: string[]) => run(['kv', command, HERE, ...args, '-p', port]);
  expect(await kv('get', 'colour')).toMatchObject({ exitCode: 1, stderr: "rocev2: there is no entry 'colour'\n" });
  expect((await kv('set', 'colour', 'green')).stdout).toMatch(/^version \d+\n$/);
  expect(await kv('get', 'colour')).toMatchObject({ exitCode: 0, stdout: 'green\n' });
  const { version } = JSON.parse((await kv('get', 'colour', '--json')).stdout);
  expect(await kv('set', 'colour', 'red', '--if-version', String(version + 1))).toMatchObject({ exitCode: 1 });
  expect(await kv('set', 'colour', 'red', '--if-version', String(version))).toMatchObject({ exitCode: 0 });
  expect(JSON.parse((await kv('list', 'col', '--json')).stdout)).toMatchObject({
    entries: [{ key: 'colour', text: 'red' }],
  });
  expect(JSON.parse((await kv('list', 'x', '--json')).stdout).entries).toEqual([]);
  const { exitCode, stdout } = await end();
  expect(exitCode).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ size: 1, sets: 2, conflicts: 1 });
});

test('watch prints changes of keys with a prefix until it has seen so many', async () => {
  const port = String(await freePort());
  const end = await serve(port);
  let isOver = false;
  let isReady = () => {};
  const ready = new Promise<void>((resolve) => {
    isReady = resolve;
  });
  const onStderr = (text: string) => void (text.includes('Ctrl-C ends it') && isReady());
  const watching = run(['kv', 'watch', HERE, 'col', '-p', port, '-n', '2', '--json'], { onStderr }).finally(() => {
    isOver = true;
  });
  await Promise.race([ready, watching]);
  // What is written before the owner knows of the watcher is not seen.
  for (let k = 0; !isOver; k++) {
    for (const key of ['other', 'colour']) await run(['kv', 'set', HERE, key, String(k), '-p', port]);
  }
  const { exitCode, stdout } = await watching;
  expect(exitCode).toBe(0);
  const { count, lost, changes } = JSON.parse(stdout);
  expect([count, lost]).toEqual([2, 0]);
  for (const change of changes) expect(change).toMatchObject({ kind: 'set', key: 'colour' });
  await end();
});

test('watch ends at Ctrl-C, and with exit code 1 when the owner ends', async () => {
  const port = String(await freePort());
  const end = await serve(port);
  const stop = new AbortController();
  const onStderr = (text: string) => void (text.includes('Ctrl-C ends it') && stop.abort());
  const ended = await run(['kv', 'watch', HERE, '-p', port], { interrupted: stop.signal, onStderr });
  expect(ended).toMatchObject({ exitCode: 0, stdout: '' });
  let isReady = () => {};
  const ready = new Promise<void>((resolve) => {
    isReady = resolve;
  });
  const watching = run(['kv', 'watch', HERE, '-p', port], {
    onStderr: (text) => void (text.includes('Ctrl-C ends it') && isReady()),
  });
  await Promise.race([ready, watching]);
  await end();
  expect((await watching).exitCode).toBeGreaterThan(0);
});

test('bench measures GETs and SETs, and checks the values', async () => {
  const port = String(await freePort());
  const end = await serve(port);
  const args = [
    'kv',
    'bench',
    HERE,
    '-p',
    port,
    '--keys',
    '50',
    '--depth',
    '4',
    '-D',
    '200ms',
    '--gets',
    '0.5',
    '--json',
  ];
  const { exitCode, stdout, stderr } = await run(args);
  expect(exitCode).toBe(0);
  const result = JSON.parse(stdout);
  const { operations, bytes } = result.copies;
  const note = `${operations} WRITEs, READs and atomics (${formatBytes(bytes)}) were copies to mapped regions, without packets\n`;
  expect(stderr).toBe(operations === 0 ? '' : note);
  expect(result.get.count).toBe(result.counters.gets);
  expect(result.set.count).toBeGreaterThan(0);
  expect(result.get.p99Ns).toBeGreaterThanOrEqual(result.get.p50Ns);
  await end();
});

describe('mistakes', () => {
  test.each([
    ['get 127.0.0.1', 'key'],
    ['set 127.0.0.1 k v --ttl 0s', 'above 0'],
    ['set 127.0.0.1 k v --if-version x', '--if-version'],
    ['bench 127.0.0.1 --gets 2', 'from 0 to 1'],
    ['bench 127.0.0.1 --value 7', 'too short'],
    ['serve --eviction fifo', 'lru, none'],
    ['serve --bind 127.0.4.3 -p 0 --engine inline --memory 1MiB', 'too little'],
  ])('kv %s is a mistake, and says which', async (args, words) => {
    const { exitCode, stderr } = await run(['kv', ...args.split(' ')]);
    expect(stderr).toContain(words);
    expect(exitCode).toBe(2);
  });

  test('an owner that is not there has the exit code of that', async () => {
    expect(await run(['kv', 'get', '127.0.4.99', 'k', '-p', '9'])).toMatchObject({ exitCode: 3 });
  });
});
