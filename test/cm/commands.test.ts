import { describe, expect, it } from 'vitest';
import { bothSides, serve } from '../../packages/cli/test/both-sides.js';
import { run } from '../../packages/cli/test/run-in-process.js';
import { freePort } from '../support/free-port.js';

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

  it('srq-pingpong: both sides say the same, and check every message', async () => {
    const numbers = ['-p', `${await freePort()}`, '-s', '3000', '-n', '60', '-q', '4', '-r', '8', '-c', '--json'];
    const [server, client] = await bothSides(
      ['srq-pingpong', '--bind', TWO_SIDES.server, ...numbers],
      ['srq-pingpong', '127.0.0.1', '--bind', TWO_SIDES.client, ...numbers],
    );
    expect([server.exitCode, client.exitCode], server.stderr + client.stderr).toEqual([0, 0]);
    const common = { queuePairs: 4, iterations: 60, sizeBytes: 3000, seconds: expect.any(Number), verified: true };
    expect(JSON.parse(server.stdout)).toMatchObject({ role: 'server', peer: TWO_SIDES.client, ...common });
    expect(JSON.parse(client.stdout)).toMatchObject({ role: 'client', peer: TWO_SIDES.server, ...common });
  });

  it('srq-pingpong finds contents that are not as they should be', async () => {
    const numbers = ['-p', `${await freePort()}`, '-n', '4', '-q', '2'];
    const [server] = await bothSides(
      ['srq-pingpong', '--bind', TWO_SIDES.server, '-c', ...numbers],
      ['srq-pingpong', '127.0.0.1', '--bind', TWO_SIDES.client, ...numbers],
    );
    expect(server.exitCode).toBe(4);
    expect(server.stderr).toMatch(/invalid data in \d messages/);
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

  it('ucmatose: three connections, five messages each way on each', async () => {
    const numbers = ['-c', '3', '-C', '5', '-S', '2000', '--json'];
    const [server, client] = await bothSides(
      ['ucmatose', '-b', TWO_SIDES.server, ...numbers],
      ['ucmatose', '-s', TWO_SIDES.server, '-b', TWO_SIDES.client, ...numbers],
    );
    expect([server.exitCode, client.exitCode], server.stderr + client.stderr).toEqual([0, 0]);
    const common = { connections: 3, iterations: 5, sizeBytes: 2000, seconds: expect.any(Number) };
    expect(JSON.parse(server.stdout)).toMatchObject({ role: 'server', peer: TWO_SIDES.client, ...common });
    expect(JSON.parse(client.stdout)).toMatchObject({ role: 'client', peer: TWO_SIDES.server, ...common });
  });

  it('ucmatose: a client that waits for more messages than the server sends says that it has hung up', async () => {
    const [server, client] = await bothSides(
      ['ucmatose', '-b', TWO_SIDES.server, '-C', '0'],
      ['ucmatose', '-s', TWO_SIDES.server, '-b', TWO_SIDES.client, '-C', '1'],
    );
    expect(server.exitCode, server.stderr).toBe(0);
    expect(client.exitCode).toBe(3);
    expect(client.stderr).toContain('the peer has disconnected');
  });

  it('cmtime: the client measures every step of all connections', async () => {
    const numbers = ['-c', '5', '--json'];
    const [server, client] = await bothSides(
      ['cmtime', '-b', TWO_SIDES.server, ...numbers],
      ['cmtime', '-s', TWO_SIDES.server, '-b', TWO_SIDES.client, ...numbers],
    );
    expect([server.exitCode, client.exitCode], server.stderr + client.stderr).toEqual([0, 0]);
    expect(JSON.parse(server.stdout)).toMatchObject({ role: 'server', connections: 5, steps: [] });
    const { steps } = JSON.parse(client.stdout);
    expect(steps.map(({ name }: { name: string }) => name)).toEqual(['create qp', 'connect', 'disconnect', 'destroy']);
    for (const { minNs, maxNs, totalNs } of steps) {
      expect(minNs).toBeGreaterThan(0);
      expect(maxNs).toBeGreaterThanOrEqual(minNs);
      expect(totalNs).toBeGreaterThanOrEqual(maxNs);
    }
  });

  it('cmtime prints what cmtime prints', async () => {
    const [, client] = await bothSides(
      ['cmtime', '-b', TWO_SIDES.server],
      ['cmtime', '-s', TWO_SIDES.server, '-b', TWO_SIDES.client],
    );
    expect(client.stdout).toMatch(
      /^step +total ms +max ms +min us +us \/ conn\ncreate qp +: +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+\nconnect /,
    );
  });

  it('udaddy: three connections, five datagrams each way on each', async () => {
    const numbers = ['-c', '3', '-C', '5', '-S', '2000', '--json'];
    const [server, client] = await bothSides(
      ['udaddy', '-b', TWO_SIDES.server, ...numbers],
      ['udaddy', '-s', TWO_SIDES.server, '-b', TWO_SIDES.client, ...numbers],
    );
    expect([server.exitCode, client.exitCode], server.stderr + client.stderr).toEqual([0, 0]);
    const common = { connections: 3, iterations: 5, sizeBytes: 2000, seconds: expect.any(Number) };
    expect(JSON.parse(server.stdout)).toMatchObject({ role: 'server', peer: TWO_SIDES.client, ...common });
    expect(JSON.parse(client.stdout)).toMatchObject({ role: 'client', peer: TWO_SIDES.server, ...common });
  });

  it('udaddy: with no datagrams to send, finding the queue pair is all', async () => {
    const [server, client] = await bothSides(
      ['udaddy', '-b', TWO_SIDES.server, '-C', '0', '-c', '2'],
      ['udaddy', '-s', TWO_SIDES.server, '-b', TWO_SIDES.client, '-C', '0', '-c', '2'],
    );
    expect([server.exitCode, client.exitCode], server.stderr + client.stderr).toEqual([0, 0]);
    expect(client.stdout).toMatch(/^2 connections, 0 datagrams of 100 bytes each way, in \d+\.\d\d seconds$/m);
  });

  it('udaddy says that nobody serves the port', async () => {
    const { waits, ended } = serve(['ucmatose', '-b', TWO_SIDES.server, '-C', '0']);
    await waits;
    const { exitCode, stderr } = await run(['udaddy', '-s', TWO_SIDES.server, '-b', TWO_SIDES.client, '-p', '7471']);
    expect(exitCode).toBe(3);
    expect(stderr).toContain('no datagram service on that port');
    await run(['ucmatose', '-s', TWO_SIDES.server, '-b', TWO_SIDES.client, '-C', '0']);
    expect((await ended).exitCode).toBe(0);
  });

  it.each([
    ['pingpong', ['pingpong', '-p']],
    ['rping', ['rping', '-s', '-a', TWO_SIDES.server, '-p']],
    ['ucmatose', ['ucmatose', '-b', TWO_SIDES.server, '-p']],
    ['cmtime', ['cmtime', '-b', TWO_SIDES.server, '-p']],
    ['udaddy', ['udaddy', '-b', TWO_SIDES.server, '-p']],
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
    [['rping', '-s', '-a', '127.0.0.1', '-S', '20'], 'give 23 to 65535'],
    [['rping', '-s'], 'required option'],
    [['ucmatose', '-c', '0'], 'is not a whole number from 1 to 1024'],
    [['udaddy', '-c', '100', '-C', '1000'], '-c times -C is at most 16384'],
    [['udaddy', '-b', '127.61.0.3', '-S', '4097'], 'give -S 4096 or less'],
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
