/** What strangers may do to what is served over HTTP, telemetry and the dashboard: scrapers and pages that come honestly are answered meanwhile. */

import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openDashboardServer } from '../../packages/dashboard/src/server.js';
import { serveEstats } from '../../src/verbs/estats/endpoint-server.js';
import { boundedHttpServer } from '../../src/verbs/estats/http-server.js';
import { createPair } from '../support/pair.js';

const HOST = '127.0.6.21';

const toClose: Array<() => unknown> = [];
let before: string | undefined;
beforeEach(async () => {
  before = process.env['XDG_RUNTIME_DIR'];
  const runtime = await mkdtemp(path.join(os.tmpdir(), 'http-'));
  process.env['XDG_RUNTIME_DIR'] = runtime;
  toClose.push(() => rm(runtime, { recursive: true }));
});
afterEach(async () => {
  for (const close of toClose.splice(0).reverse()) await close();
  if (before === undefined) delete process.env['XDG_RUNTIME_DIR'];
  else process.env['XDG_RUNTIME_DIR'] = before;
});

/** Telemetry over TCP. */
async function telemetry(allowHosts: readonly string[] = []): Promise<number> {
  const { a } = await createPair({ estats: {} });
  const identity = { pid: process.pid, address: '192.0.2.1', port: 'simulated', engine: 'inline' } as const;
  const server = await serveEstats(a.device.estats!, identity, { http: { host: HOST, port: 0, allowHosts } });
  toClose.push(() => server.close());
  return Number(new URL(server.httpUrl!).port);
}

/** A dashboard on loopback, without a token; its documents and settings do nothing. */
async function dashboard(allowHosts: readonly string[] = []): Promise<number> {
  const source = {
    documents: { metrics: () => ({}) },
    subscribe: () => () => {},
    apply: async (settings: unknown) => settings,
  };
  const server = await openDashboardServer({
    host: HOST,
    port: 0,
    token: undefined,
    allowHosts,
    files: new Map(),
    source,
  });
  toClose.push(() => server.close());
  return Number(new URL(server.url).port);
}

async function stranger(port: number, text = ''): Promise<Socket> {
  const socket = connect({ host: HOST, port, localAddress: '127.0.6.22' }).on('error', () => {});
  toClose.push(() => socket.destroy());
  await once(socket, 'connect');
  if (text !== '') socket.write(text);
  return socket;
}

interface Asked {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
}

/** Status and milliseconds of one honest request, on a connection of its own. */
async function ask(port: number, { path = '/metrics', method = 'GET', headers = {} }: Asked = {}) {
  const startMs = performance.now();
  const status = await new Promise<number>((resolve, reject) => {
    const asked = request({ host: HOST, port, path, method, headers, agent: false }, (response) => {
      resolve(response.statusCode!);
      response.destroy(); // A stream has no end.
    });
    asked.on('error', reject);
    asked.end();
  });
  return { status, ms: performance.now() - startMs };
}

/** The status line that such bytes are answered with. */
async function answerTo(port: number, text: string): Promise<string> {
  const socket = await stranger(port, text);
  const [bytes] = await once(socket, 'data');
  return String(bytes).split('\r\n')[0];
}

const SERVERS = [
  ['telemetry', telemetry],
  ['the dashboard', dashboard],
] as const;

describe.each(SERVERS)('%s', (_, open) => {
  it.each([
    ['say nothing', ''],
    ['never finish their request', 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: '],
    [
      'never finish what they post',
      'POST /settings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
    ],
  ])('answers at once while 500 connections %s', async (_what, text) => {
    const port = await open();
    for (let i = 0; i < 500; i += 50) await Promise.all(Array.from({ length: 50 }, () => stranger(port, text)));
    for (let i = 0; i < 20; i++) {
      const { status, ms } = await ask(port);
      expect(status).toBe(200);
      expect(ms).toBeLessThan(3000);
      await stranger(port, text);
    }
  });

  it('cuts off who does not finish a request in some seconds', async () => {
    const socket = await stranger(await open(), 'GET /metrics HTTP/1.1\r\n');
    const [bytes] = await once(socket, 'data');
    expect(String(bytes)).toMatch(/^HTTP\/1\.1 408 /);
  });

  it('refuses what is no URL, and answers the next request', async () => {
    const port = await open();
    expect(await answerTo(port, 'GET //[ HTTP/1.1\r\nHost: localhost\r\n\r\n')).toBe('HTTP/1.1 400 Bad Request');
    expect(await answerTo(port, 'GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n')).toBe('HTTP/1.1 400 Bad Request');
    expect((await ask(port)).status).toBe(200);
  });

  it.each(['evil.example', '127.0.6.21.evil.example', 'localhost.evil.example:80', '[::1].evil.example', '[evil]'])(
    'shows nothing to who asks for %s, whose owner may let that name point here',
    async (host) => {
      expect((await ask(await open(), { headers: { Host: host } })).status).toBe(421);
    },
  );

  it.each(['localhost', 'LOCALHOST:9400', HOST, `${HOST}:80`, '[::1]:9400', '192.0.2.7'])(
    'answers who asks for %s',
    async (host) => expect((await ask(await open(), { headers: { Host: host } })).status).toBe(200),
  );

  it('answers to a name it was told, and to no other', async () => {
    const port = await open(['lab.example']);
    expect((await ask(port, { headers: { Host: 'Lab.example:9400' } })).status).toBe(200);
    expect((await ask(port, { headers: { Host: 'x.lab.example' } })).status).not.toBe(200);
  });
});

describe('the dashboard', () => {
  it.each([
    ['by its origin', { Origin: 'http://evil.example' }],
    ['by its origin on another port of this host', { Origin: 'http://localhost:1' }],
    ['by its opaque origin', { Origin: 'null' }],
    ['by what the browser says of it', { 'Sec-Fetch-Site': 'cross-site' }],
  ])('gives no stream to a page of another site, known %s, and takes no settings from it', async (_, headers) => {
    const port = await dashboard();
    const own = { Host: `localhost:${port}` };
    const json = { 'Content-Type': 'application/json' };
    expect((await ask(port, { path: '/stream', headers: { ...own, ...headers } })).status).toBe(403);
    const post = { path: '/settings', method: 'POST' };
    expect((await ask(port, { ...post, headers: { ...own, ...json, ...headers } })).status).toBe(403);

    const page = { ...own, Origin: `http://localhost:${port}`, 'Sec-Fetch-Site': 'same-origin' };
    expect((await ask(port, { path: '/stream', headers: page })).status).toBe(200);
    expect((await ask(port, { ...post, headers: { ...page, ...json } })).status).toBe(400); // An empty body is no JSON.
  });
});

describe('a bounded HTTP server', () => {
  it('lets nobody go who is being answered: a newcomer goes where all are', async () => {
    const answers: Array<() => void> = [];
    const server = boundedHttpServer((_, response) => answers.push(() => response.end('done')), { connections: 2 });
    toClose.push(() => server.close());
    await once(server.listen(0, HOST), 'listening');
    const { port } = server.address() as { port: number };
    const busy = [ask(port), ask(port)];
    await expect.poll(() => answers.length).toBe(2);
    const newcomer = await stranger(port);
    await once(newcomer, 'close');
    for (const answer of answers) answer();
    expect((await Promise.all(busy)).map(({ status }) => status)).toEqual([200, 200]);
  });
});
