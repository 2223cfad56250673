/** Strangers who are there before the client of a command: a forged REQ that no RTU follows, a forged SIDR_REQ that no datagram follows, a TCP connection that says nothing. The client is served at once. */

import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { serve } from '../../packages/cli/test/both-sides.js';
import { run } from '../../packages/cli/test/run-in-process.js';
import { freePort } from '../support/free-port.js';
import { Forger } from './toolkit/forged-packets.js';
import { forgedReq, forgedSidrReq, LONGEST_WAITS, sendMad } from './toolkit/forged-requests.js';

const SERVER = '127.0.6.1';
const CLIENT = '127.0.6.2';
const STRANGER = '127.0.6.66';
/** Below the 20 s that one stranger cost. Two commands in one process need about one. */
const PROMPT_MS = 8_000;

/** What the stranger does once the server waits, and what undoes it. */
type Attack = (port: number) => Promise<() => void>;

/** As many forged REQs, each of another connection; or SIDR_REQs. */
function forgedRequests(count: number, source: string, forge = forgedReq): Attack {
  return async (port) => {
    // A stranger on loopback can write the client's address, too.
    const forger = await Forger.open({ from: source, to: SERVER });
    for (let id = 1; id <= count; id++) {
      const request = { source, destination: SERVER, port, communicationId: id, fields: LONGEST_WAITS };
      await sendMad(forger, forge(request));
    }
    return () => forger.close();
  };
}

/** As many TCP connections, each of which says `text` and then nothing. */
function tcpConnections(count: number, text: string): Attack {
  return async (port) => {
    const sockets: Socket[] = [];
    for (let i = 0; i < count; i++) {
      const socket = connectTcp({ host: '127.0.0.1', port, localAddress: STRANGER });
      sockets.push(socket);
      socket.on('error', () => {});
      await once(socket, 'connect');
      if (text !== '') socket.write(text);
    }
    return () => {
      for (const socket of sockets) socket.destroy();
    };
  };
}

const undo: Array<() => void> = [];
afterEach(() => {
  for (const one of undo.splice(0)) one();
});

interface Commands {
  readonly server: readonly string[];
  readonly client: readonly string[];
}

async function expectServed({ server, client }: Commands, attack: Attack): Promise<string> {
  const port = await freePort();
  const { ended, waits } = serve([...server, '-p', `${port}`]);
  await waits;
  undo.push(await attack(port));
  const begin = performance.now();
  const atClient = await run([...client, '-p', `${port}`]);
  const tookMs = performance.now() - begin;
  const atServer = await ended;
  const told = `server: ${atServer.stderr}\nclient: ${atClient.stderr}`;
  expect([atServer.exitCode, atClient.exitCode], told).toEqual([0, 0]);
  expect(tookMs, told).toBeLessThan(PROMPT_MS);
  return atServer.stderr;
}

const THROUGH_MANAGER: ReadonlyArray<[string, Commands]> = [
  [
    'rping',
    {
      server: ['rping', '-s', '-a', SERVER, '-C', '10', '-V'],
      client: ['rping', '-c', '-a', SERVER, '--bind', CLIENT, '-C', '10', '-V'],
    },
  ],
  [
    'ucmatose',
    { server: ['ucmatose', '-b', SERVER, '-c', '2'], client: ['ucmatose', '-s', SERVER, '-b', CLIENT, '-c', '2'] },
  ],
  [
    'cmtime',
    { server: ['cmtime', '-b', SERVER, '-c', '3'], client: ['cmtime', '-s', SERVER, '-b', CLIENT, '-c', '3'] },
  ],
  ...(['bw', 'lat'] as const).map((tool): [string, Commands] => {
    const numbers = ['--perftest', '-R', '-n', '20', '-s', '1000', ...(tool === 'bw' ? ['-q', '3'] : [])];
    return [
      `${tool} --perftest -R`,
      {
        server: [tool, 'write', '--bind', SERVER, ...numbers],
        client: [tool, 'write', SERVER, '--bind', CLIENT, ...numbers],
      },
    ];
  }),
];

describe.skipIf(process.platform !== 'linux').each(THROUGH_MANAGER)('%s', (_, commands) => {
  it('serves its client without a stranger: the negative twin', async () => {
    await expectServed(commands, async () => () => {});
  });

  it.each([
    ['one forged REQ', forgedRequests(1, STRANGER)],
    ['300 forged REQs', forgedRequests(300, STRANGER)],
    ["a forged REQ with the client's address", forgedRequests(1, CLIENT)],
  ])('serves its client after %s', { timeout: 40_000 }, async (_, attack) => {
    await expectServed(commands, attack);
  });
});

describe.skipIf(process.platform !== 'linux')('udaddy', () => {
  const commands = {
    server: ['udaddy', '-b', SERVER, '-c', '2'],
    client: ['udaddy', '-s', SERVER, '-b', CLIENT, '-c', '2'],
  };

  it.each<[string, Attack]>([
    ['nothing: the negative twin', async () => () => {}],
    ['one forged SIDR_REQ', forgedRequests(1, STRANGER, forgedSidrReq)],
    ['300 forged SIDR_REQs', forgedRequests(300, STRANGER, forgedSidrReq)],
    ["a forged SIDR_REQ with the client's address", forgedRequests(1, CLIENT, forgedSidrReq)],
    ['300 forged REQs', forgedRequests(300, STRANGER)],
  ])('serves its client after %s', { timeout: 40_000 }, async (_, attack) => {
    await expectServed(commands, attack);
  });
});

const OVER_TCP: ReadonlyArray<[string, Commands]> = [
  [
    'pingpong',
    {
      server: ['pingpong', '--bind', SERVER, '-n', '10'],
      client: ['pingpong', '127.0.0.1', '--bind', CLIENT, '-n', '10'],
    },
  ],
  [
    'srq-pingpong',
    {
      server: ['srq-pingpong', '--bind', SERVER, '-n', '10', '-q', '2'],
      client: ['srq-pingpong', '127.0.0.1', '--bind', CLIENT, '-n', '10', '-q', '2'],
    },
  ],
  [
    'bw --perftest',
    {
      server: ['bw', 'write', '--bind', SERVER, '--perftest', '-n', '20'],
      client: ['bw', 'write', '127.0.0.1', '--bind', CLIENT, '--perftest', '-n', '20'],
    },
  ],
];

describe.skipIf(process.platform !== 'linux').each(OVER_TCP)('%s', (_, commands) => {
  it('serves its client without a stranger: the negative twin', async () => {
    await expectServed(commands, async () => () => {});
  });

  it.each([
    ['one that is silent', tcpConnections(1, '')],
    ['100 that are silent', tcpConnections(100, '')],
    ['one that begins a message', tcpConnections(1, '0000')],
  ])('serves its client after %s', { timeout: 40_000 }, async (_, attack) => {
    await expectServed(commands, attack);
  });

  it('names one that says something else, and serves its client', { timeout: 40_000 }, async () => {
    const text = `GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: none\u001b[2J\r\n\r\n${' '.repeat(60)}`;
    const stderr = await expectServed(commands, tcpConnections(1, text));
    expect(stderr).toMatch(new RegExp(`${STRANGER}:\\d+ was not the client: `));
    expect(stderr).not.toContain('\u001b');
  });
});

it.skipIf(process.platform !== 'linux').each([
  ['rping', ['rping', '-s', '-a', SERVER], forgedRequests(1, STRANGER)],
  ['ucmatose', ['ucmatose', '-b', SERVER], forgedRequests(1, STRANGER)],
  ['cmtime', ['cmtime', '-b', SERVER], forgedRequests(1, STRANGER)],
  ['udaddy', ['udaddy', '-b', SERVER], forgedRequests(1, STRANGER, forgedSidrReq)],
  ['srq-pingpong', ['srq-pingpong', '--bind', SERVER], tcpConnections(1, '')],
  ['bw --perftest -R', ['bw', 'write', '--bind', SERVER, '--perftest', '-R'], forgedRequests(1, STRANGER)],
  ['pingpong', ['pingpong', '--bind', SERVER], tcpConnections(1, '')],
])('a %s server that a stranger has come to is interrupted at once', async (_, server, attack) => {
  const stop = new AbortController();
  const port = await freePort();
  const { ended, waits } = serve([...server, '-p', `${port}`], { interrupted: stop.signal });
  await waits;
  undo.push(await attack(port));
  const begin = performance.now();
  stop.abort();
  expect((await ended).exitCode).toBe(130);
  expect(performance.now() - begin).toBeLessThan(PROMPT_MS);
});
