/** `--transport` of bw, lat and pingpong: real sockets on loopback, both sides in this process. */

import { describe, expect, it } from 'vitest';
import { freePort } from '../../../test/support/free-port.js';
import { bothSides, serve } from './both-sides.js';
import { run } from './run-in-process.js';

const SERVER = '127.62.0.1';
const CLIENT = '127.62.0.2';

/** Runs a server and its client; `ours` and `theirs` come after what both share. */
async function pair(
  words: readonly string[],
  { server = [], client = [] }: { readonly server?: readonly string[]; readonly client?: readonly string[] } = {},
) {
  const [tool] = words;
  const port = ['-p', `${await freePort()}`];
  const host = tool === 'pingpong' || words.includes('--perftest') ? '127.0.0.1' : SERVER;
  const [atServer, atClient] = await bothSides(
    [...words, ...port, '--bind', SERVER, '--json', ...server],
    [...words, host, ...port, '--bind', CLIENT, '--json', ...client],
  );
  const said = atServer.stderr + atClient.stderr;
  return {
    exitCodes: [atServer.exitCode, atClient.exitCode],
    said,
    atServer: atServer.stdout === '' ? undefined : JSON.parse(atServer.stdout),
    atClient: atClient.stdout === '' ? undefined : JSON.parse(atClient.stdout),
    serverSaid: atServer.stderr,
    clientSaid: atClient.stderr,
  };
}

describe.skipIf(process.platform !== 'linux')('two of our own', () => {
  it.each([
    ['bw', 'send', 'uc', 20_000],
    ['bw', 'write', 'uc', 20_000],
    ['lat', 'send', 'uc', 5_000],
    ['lat', 'write', 'uc', 5_000],
    ['bw', 'send', 'ud', 4_096],
    ['lat', 'send', 'ud', 1],
  ])('%s %s --transport %s of %i bytes: all data verified, nothing lost', async (tool, op, transport, size) => {
    const { exitCodes, said, atClient, atServer } = await pair([tool, op, '--transport', transport], {
      client: ['-s', `${size}`, '-n', '50'],
    });
    expect(exitCodes, said).toEqual([0, 0]);
    expect(atClient).toMatchObject({ transport, iterations: 50, lost: 0, verified: true, recovery: 'none' });
    expect(atServer).toMatchObject({ transport, iterations: 50, lost: 0, verified: true });
  });

  it('multipath is RC with the recovery of this name', async () => {
    const { exitCodes, said, atClient, atServer } = await pair(['bw', 'write', '--transport', 'multipath'], {
      client: ['-s', '20000', '-n', '50', '--loss', 'every=50'],
    });
    expect(exitCodes, said).toEqual([0, 0]);
    expect(atClient).toMatchObject({ transport: 'rc', recovery: 'multipath', iterations: 50, verified: true });
    expect(atServer).toMatchObject({ recovery: 'multipath', verified: true });
  });

  it('and refuses another recovery', async () => {
    const refused = await run(['bw', 'write', '--transport', 'multipath', '--recovery', 'irn', '--bind', SERVER]);
    expect(refused.exitCode).toBe(2);
    expect(refused.stderr).toContain('--recovery irn cannot be used with --transport multipath');
  });

  it('several queue pairs send datagrams side by side', async () => {
    const { atClient } = await pair(['bw', 'send', '--transport', 'ud'], { client: ['-n', '20', '-q', '4'] });
    expect(atClient).toMatchObject({ iterations: 80, qps: 4, lost: 0, verified: true, sizeBytes: 4096 });
  });

  /** 100 messages of five packets; 15 packets are lost, each of another message. */
  const HOLES = ['-s', '20000', '-n', '100', '--loss', 'every=33'];

  it.each(['send', 'write'])('UC drops a %s with a hole whole, and what is told is what arrived', async (op) => {
    const { exitCodes, atClient, atServer } = await pair(['bw', op, '--transport', 'uc'], { client: HOLES });
    expect(exitCodes).toEqual([0, 0]);
    expect(atClient).toMatchObject({ iterations: 85, lost: 15, bytes: 85 * 20_000, verified: true });
    expect(atServer).toMatchObject({ role: 'server', iterations: 85, lost: 15, unknown: [] });
    expect(atServer.counters.uc_messages_dropped).toBe(15);
  });

  it('the same loss under RC costs repetitions, and no message', async () => {
    const { atClient } = await pair(['bw', 'send'], { client: HOLES });
    expect(atClient).toMatchObject({ transport: 'rc', iterations: 100, lost: 0, verified: true });
    expect(atClient.counters.tx_retransmitted).toBeGreaterThan(0);
  });

  it('every lost datagram is one message', async () => {
    const { atClient } = await pair(['bw', 'send', '--transport', 'ud'], {
      client: ['-n', '100', '--loss', 'every=10'],
    });
    expect(atClient).toMatchObject({ iterations: 90, lost: 10, verified: true });
  });

  it('nothing arrives: that is a failure', async () => {
    const { exitCodes, clientSaid, atClient } = await pair(['bw', 'send', '--transport', 'ud'], {
      client: ['-n', '10', '--loss', 'every=1'],
    });
    expect(exitCodes[1]).toBe(1);
    expect(clientSaid).toContain('all of the 10 messages were lost');
    expect(atClient).toMatchObject({ iterations: 0, lost: 10, verified: false });
  });

  it.each([
    ['send', 'ud'],
    ['write', 'uc'],
  ])('lat %s --transport %s goes on behind a message that nobody answers', async (op, transport) => {
    const { exitCodes, said, atClient } = await pair(['lat', op, '--transport', transport], {
      client: ['-n', '20', '--loss', 'host>wire:every=8'],
    });
    expect(exitCodes, said).toEqual([0, 0]);
    expect(atClient).toMatchObject({ iterations: 18, lost: 2, verified: true });
  });

  it('a client with another transport is refused by name, on both sides; the server waits on for its own', async () => {
    const port = ['-p', `${await freePort()}`];
    const words = ['bw', 'send', ...port, '--json'];
    const { ended, waits } = serve([...words, '--bind', SERVER, '--transport', 'ud']);
    await waits;
    const client = [...words, SERVER, '--bind', CLIENT, '-n', '5'];
    const refused = await run(client);
    expect(refused.exitCode).toBe(1);
    const served = await run([...client, '--transport', 'ud']);
    expect(served.exitCode, served.stderr).toBe(0);
    const { exitCode, stderr } = await ended;
    expect(exitCode).toBe(0);
    for (const text of [stderr, refused.stderr]) {
      expect(text).toContain("the server runs 'rocev2 bw send --transport ud', the client 'rocev2 bw send'");
    }
  });
});

describe('what a transport does not have is refused before anything is opened', () => {
  it.each([
    ['bw write --transport ud', 'UD has no WRITE (it has SEND)'],
    ['bw read --transport uc', 'UC has no READ (it has WRITE and SEND)'],
    ['lat atomic --transport uc', 'UC has no atomics'],
    ['bw send --transport ud -s 5000', 'a UD message is one packet: 5000 bytes are more than the path MTU of 4096'],
    ['lat send --transport ud -s 2000 -m 1024', '2000 bytes are more than the path MTU of 1024 (give -s 1024 or less)'],
    ['bw send --transport uc --recovery go-back-n', '--recovery cannot be used with UC (it does not retransmit'],
    ['bw send --transport uc --recovery-params a=1', '--recovery-params cannot be used with UC'],
    ['bw send --transport ud -u 14', '--timeout cannot be used with UD'],
    ['bw send --transport ud --retry-cnt 7', '--retry-cnt cannot be used with UD'],
    ['bw send --transport ud --rate 1Gbps', '--rate cannot be used with UD (rate control works on a connection'],
    ['bw send --transport uc --perftest -R', '--rdma-cm cannot be used with UC'],
    ['bw send --transport ud --perftest -R', '--rdma-cm cannot be used with UD'],
    ['bw send --transport xrc', 'It is one of rc, uc, ud'],
    ['pingpong --transport ud -s 2000', '2000 bytes are more than the path MTU of 1024'],
  ])('%s', async (line, text) => {
    const { exitCode, stderr } = await run(line.split(' '));
    expect(exitCode).toBe(2);
    expect(stderr).toContain(text);
  });
});

describe.skipIf(process.platform !== 'linux')('with the exchange of perftest', () => {
  it.each([
    ['bw', 'send', 'uc', 9_000],
    ['bw', 'write', 'uc', 9_000],
    ['lat', 'send', 'uc', 9_000],
    ['lat', 'write', 'uc', 9_000],
    ['bw', 'send', 'ud', 4_000],
    ['lat', 'send', 'ud', 64],
  ])('%s %s --transport %s', async (tool, op, transport, size) => {
    const words = [tool, op, '--transport', transport, '--perftest', '-s', `${size}`, '-n', '20'];
    const { exitCodes, said, clientSaid, atClient, atServer } = await pair(words);
    // What a WRITE without acknowledgement came to, nobody says: no success.
    const isUnverified = tool === 'bw' && op === 'write';
    expect(exitCodes, said).toEqual([0, isUnverified ? 1 : 0]);
    expect(clientSaid.includes('unverified:')).toBe(isUnverified);
    // A sender that nobody acknowledges knows what it has sent.
    expect(atClient).toMatchObject({ transport, iterations: 20, lost: tool === 'bw' ? null : 0 });
    expect(atServer).toMatchObject({ transport, iterations: 20, lost: 0 });
  });

  it('UD without -s sends what the path MTU carries', async () => {
    const words = ['bw', 'send', '--transport', 'ud', '--perftest', '-n', '20'];
    const { atServer } = await pair(words, { client: ['-m', '1024'], server: ['-m', '2048'] });
    expect(atServer).toMatchObject({ sizeBytes: 1024, iterations: 20, mtu: 1024 });
  });

  it.each([
    ['send', 'ud', ['-s', '1000'], 90, 10],
    ['write', 'uc', ['-s', '20000'], 50, 50],
  ])('a server of %s over %s counts what arrives', async (op, transport, size, iterations, lost) => {
    const words = ['bw', op, '--transport', transport, '--perftest', ...size, '-n', '100'];
    const { exitCodes, atServer } = await pair(words, { client: ['--loss', 'every=10'] });
    expect(exitCodes[0]).toBe(0);
    expect(atServer).toMatchObject({ iterations, lost });
  });

  it('a latency test ends at the first loss, because perftest would wait for ever', async () => {
    const words = ['lat', 'send', '--transport', 'ud', '--perftest', '-n', '20'];
    const { exitCodes, serverSaid, clientSaid, atServer, atClient } = await pair(words, {
      client: ['--loss', 'host>wire:every=8'],
    });
    expect(exitCodes).toEqual([1, 1]);
    for (const text of [serverSaid, clientSaid]) {
      expect(text).toContain("a message was lost, and 'ib_send_lat -c UD' waits for it forever");
    }
    expect(atClient).toMatchObject({ iterations: 7, lost: 1 });
    expect(atServer).toMatchObject({ iterations: 7, lost: 1 });
  });

  it.each([
    ['write', 'rc', 'uc', 'the peer sends UC packets, and this side has RC'],
    ['write', 'uc', 'rc', 'the peer sends RC packets, and this side has UC'],
    ['send', 'rc', 'ud', 'the peer sends UC or UD packets, and this side has RC'],
    ['send', 'ud', 'uc', 'the peer sends RC or UC packets, and this side has UD'],
  ])('%s: a server of %s ends at once when the client has %s', async (op, server, client, text) => {
    const words = ['bw', op, '--perftest', '-s', '1000', '-n', '20'];
    const { exitCodes, serverSaid } = await pair(words, {
      server: ['--transport', server],
      client: ['--transport', client],
    });
    expect(exitCodes[0]).toBe(1);
    expect(exitCodes[1]).not.toBe(0);
    expect(serverSaid).toContain(text);
  });

  it.each([
    ['send', 'received a message of 50 bytes; expected 100'],
    ['write', 'the client moved messages of 50 bytes; this side expected 100'],
    ['read', 'the client moved messages of 50 bytes; this side expected 100'],
  ])('%s: another size than the one this side was told is not taken for it', async (op, text) => {
    const words = ['bw', op, '--perftest', '-n', '5'];
    const { exitCodes, serverSaid } = await pair(words, { server: ['-s', '100'], client: ['-s', '50'] });
    expect(exitCodes[0]).toBe(1);
    expect(serverSaid).toContain(text);
  });

  it('a server of SEND says how many of its messages never came', async () => {
    const words = ['bw', 'send', '--perftest', '-s', '100'];
    const { exitCodes, serverSaid } = await pair(words, { server: ['-n', '9'], client: ['-n', '5'] });
    expect(exitCodes[0]).toBe(1);
    expect(serverSaid).toContain('the client is done, and 5 of 9 messages have arrived');
  });

  it('a server of READ latency tells what it has answered', async () => {
    const { atServer } = await pair(['lat', 'read', '--perftest', '-s', '100'], {
      server: ['-n', '500'],
      client: ['-n', '5'],
    });
    expect(atServer.iterations).toBe(5);
  });

  it('a server of WRITE tells what the client has done, not what it was told to expect', async () => {
    const { atServer } = await pair(['bw', 'write', '--perftest', '-s', '100'], {
      server: ['-n', '500'],
      client: ['-n', '5'],
    });
    expect(atServer.iterations).toBe(5);
  });
});

describe.skipIf(process.platform !== 'linux')('pingpong', () => {
  it.each([
    ['uc', '5000'],
    ['ud', '1000'],
  ])('over %s checks every message', async (transport, size) => {
    const { exitCodes, said, atClient, atServer } = await pair([
      'pingpong',
      '--transport',
      transport,
      '-s',
      size,
      '-n',
      '50',
      '-c',
    ]);
    expect(exitCodes, said).toEqual([0, 0]);
    for (const result of [atClient, atServer])
      expect(result).toMatchObject({ transport, iterations: 50, verified: true });
  });

  it('names a peer of another transport at once', async () => {
    const words = ['pingpong', '-n', '50', '-s', '100', '-p', `${await freePort()}`];
    const server = serve([...words, '--bind', SERVER]);
    await server.waits;
    const enough = new AbortController();
    const client = run([...words, '127.0.0.1', '--bind', CLIENT, '--transport', 'uc'], { interrupted: enough.signal });
    const { exitCode, stderr } = await server.ended;
    enough.abort(); // UC waits 10 s for a message that may have been lost.
    expect((await client).exitCode).not.toBe(0);
    expect(exitCode).toBe(1);
    expect(stderr).toContain('the peer sends UC or UD packets, and this side has RC');
  });
});
