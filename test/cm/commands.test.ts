import { describe, expect, it } from 'vitest';
import { bothSides, freePort, serve } from '../cli/both-sides.js';
import { run } from '../cli/run-in-process.js';

const TWO_SIDES = { client: '127.61.0.1', server: '127.61.0.2' };

describe.skipIf(process.platform !== 'linux')('on two loopback addresses', () => {
  it('pingpong: both sides say the same, and check every message', async () => {
    const numbers = ['-p', `${await freePort()}`, '-s', '5000', '-n', '50', '-c', '--json'];
    const [server, client] = await bothSides(
      ['pingpong', '--bind', TWO_SIDES.server, ...numbers],
      ['pingpong', '127.0.0.1', '--bind', TWO_SIDES.client, ...numbers],
    );
    expect([server.exitCode, client.exitCode], server.stderr + client.stderr).toEqual([0, 0]);
    const common = { transport: 'rc', iterations: 50, sizeBytes: 5000, seconds: expect.any(Number), verified: true };
    expect(JSON.parse(server.stdout)).toMatchObject({ role: 'server', peer: TWO_SIDES.client, ...common });
    expect(JSON.parse(client.stdout)).toMatchObject({ role: 'client', peer: TWO_SIDES.server, ...common });
  });

  it('pingpong prints what ibv_rc_pingpong prints', async () => {
    const numbers = ['-p', `${await freePort()}`, '-n', '10'];
    const [server] = await bothSides(
      ['pingpong', '--bind', TWO_SIDES.server, ...numbers],
      ['pingpong', '127.0.0.1', '--bind', TWO_SIDES.client, ...numbers],
    );
    const line = 'LID 0x0000, QPN 0x[0-9a-f]{6}, PSN 0x[0-9a-f]{6}, GID ::ffff:127.61.0';
    expect(server.stdout).toMatch(new RegExp(`^ {2}local address: {2}${line}.2\n {2}remote address: ${line}.1\n`));
    expect(server.stdout).toMatch(/^81920 bytes in \d+\.\d\d seconds = [\d.]+ Mbit\/sec$/m);
    expect(server.stdout).toMatch(/^10 iters in \d+\.\d\d seconds = [\d.]+ usec\/iter$/m);
  });

  it('rping: both sides say the same, and check every ping', async () => {
    const numbers = ['-a', TWO_SIDES.server, '-C', '50', '-S', '3000', '-V', '--json'];
    const [server, client] = await bothSides(
      ['rping', '-s', ...numbers],
      ['rping', '-c', '--bind', TWO_SIDES.client, ...numbers],
    );
    expect([server.exitCode, client.exitCode], server.stderr + client.stderr).toEqual([0, 0]);
    const common = { iterations: 50, sizeBytes: 3000, seconds: expect.any(Number), verified: true };
    expect(JSON.parse(server.stdout)).toMatchObject({ role: 'server', peer: TWO_SIDES.client, ...common });
    expect(JSON.parse(client.stdout)).toMatchObject({ role: 'client', peer: TWO_SIDES.server, ...common });
  });

  it('an rping server fails when the client ends too early', async () => {
    const [server] = await bothSides(
      ['rping', '-s', '-a', TWO_SIDES.server, '-C', '5'],
      ['rping', '-c', '--bind', TWO_SIDES.client, '-a', TWO_SIDES.server, '-C', '2', '-v'],
    );
    expect(server.exitCode).toBe(1);
    expect(server.stderr).toContain('the client ended after 2 of 5 pings');
  });

  it.each([
    ['pingpong', ['pingpong', '-p']],
    ['rping', ['rping', '-s', '-a', TWO_SIDES.server, '-p']],
  ])('a waiting %s server is interrupted', async (_, args) => {
    const stop = new AbortController();
    const { ended, waits } = serve([...args, `${await freePort()}`], { interrupted: stop.signal });
    await waits;
    stop.abort();
    expect((await ended).exitCode).toBe(130);
  });
});

describe('usage', () => {
  it.each([
    [['rping', '-a', '127.0.0.1'], 'give -s or -c'],
    [['rping', '-s', '-c', '-a', '127.0.0.1'], 'cannot be used with'],
    [['rping', '-s', '-a', '127.0.0.1', '-S', '20'], 'it may have 23 to 65535'],
    [['rping', '-s'], 'required option'],
    [['pingpong', '-m', '1000'], 'The path MTU is one of'],
  ])('%j is refused', async (args, words) => {
    const { exitCode, stderr } = await run(args);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(words);
  });

  it('pingpong says that nobody listens', async () => {
    const { exitCode, stderr } = await run(['pingpong', '127.0.0.1', '-p', `${await freePort()}`]);
    expect(exitCode).toBe(3);
    expect(stderr).toContain('is the server running?');
  });
});
