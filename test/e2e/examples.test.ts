import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isBuilt, Program } from './executable.js';

/** The examples use the addresses a newcomer would, and UDP 4791 on them: one after the other. */
describe.runIf(isBuilt)('examples', () => {
  it.each<[string, RegExp, string[]?]>([
    ['examples/hello.js', /server received: hello over RoCEv2\n[\s\S]*written by the peer\n[\s\S]*saw 42n and left 7n/],
    ['examples/verbs.js', /receiver RECV 9 bytes: a message\nwritten {2}inline data\nbad key {2}REM_ACCESS_ERR/],
    ['examples/stream.js', /sent 2097152 bytes; the checksum of the peer is right\n/],
    [
      'examples/rpc.js',
      /2 \+ 3 = 5\n1048576 bytes, checksum right\nprogress: 1, 2, 3\nNOT_FOUND: there is no file 'x'\n/,
    ],
    [
      'examples/kv.js',
      /tea costs 349 cents\nmany GETs answered while the owner was busy\nwritten once: true\nwritten again: false\n/,
    ],
    [
      'examples/kv-demo/main.js',
      /rocev2\/kv +[\d.]+ +[\d.]{1,5}\nnode:net +[\d.]+ +\d{4,}\.\d\nIPC +[\d.]+ +\d{4,}\.\d\n/,
      ['4'],
    ],
    [
      'examples/primitives.js',
      /all began together\n300 numbers, no two alike\ncounted while the owner was busy: 300\none holder at a time, tokens in order\n/,
    ],
    ['examples/extents.js', /200 events appended, 1 failover\n200 events read, in order\n/],
    [
      'examples/network.js',
      /whole ring: 8 flows done, no packet sent again, slowdown [\d.]+\nbroken ring: 8 flows done, some packets sent again, slowdown [\d.]+\n/,
    ],
    [
      'examples/spray.js',
      /6553600 bytes over 8 paths, in order: true\npieces came before others ahead of them: true\nthe slow path took fewer than any other: true\n/,
    ],
    ['examples/storage.js', /64 MiB over rdma\n64 writes done over \w+, 1 failover\nback on rdma: 64 of 64 blocks/],
  ])('%s runs and prints what it says', async (file, expected, args: string[] = []) => {
    const program = new Program(file, args);
    expect(await program.ended(), program.stderr).toBe(0);
    expect(program.stdout).toMatch(expected);
  });

  it('the two programs in the README run as they are, and see each other', async () => {
    const programs = [...readFileSync('README.md', 'utf8').matchAll(/```js\n([\s\S]*?)```/g)].map(([, code]) => code);
    const [server, ada, grace] = [programs[0], programs[1], programs[1]];
    const started = (code: string, ...args: string[]) =>
      new Program('--input-type=module', ['-e', code, '--', ...args]);
    const serving = started(server);
    await serving.writes('stdout', /0 visits/);
    try {
      for (const [n, code, name] of [
        [1, ada, 'Ada'],
        [2, grace, 'Grace'],
      ] as const) {
        // With -e the first argument is argv[1], in a file argv[2].
        const client = started(code.replace('process.argv[2]', 'process.argv[1]'), name);
        expect(await client.ended(), client.stderr).toBe(0);
        expect(client.stdout).toBe(`visit number ${n}\n`);
      }
      await serving.writes('stdout', /2 visits, the last by 'Grace'/);
    } finally {
      serving.kill('SIGKILL');
      await serving.ended();
    }
  });
});
