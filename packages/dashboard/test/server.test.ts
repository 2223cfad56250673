import { request } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { RoceError } from '../../../src/core/errors.js';
import { eventually } from '../../../test/support/eventually.js';
import { type DashboardServer, openDashboardServer, serverSentEvent } from '../src/server.js';

const HOST = '127.58.1.1';
const files = new Map([
  ['index.html', { type: 'text/html; charset=utf-8', body: '<!doctype html>' }],
  ['page/main.js', { type: 'text/javascript; charset=utf-8', body: 'export {};' }],
]);

class Source {
  readonly documents = { state: () => ({ number: 7 }) };
  readonly applied: unknown[] = [];
  readonly listeners = new Set<(name: string, data: unknown) => void>();

  subscribe(send: (name: string, data: unknown) => void): () => void {
    this.listeners.add(send);
    return () => this.listeners.delete(send);
  }

  readonly apply = async (settings: unknown): Promise<unknown> => {
    if (settings === 'broken') throw new Error('the switch is gone');
    if (settings === null || typeof settings !== 'object') {
      throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', 'settings are an object');
    }
    this.applied.push(settings);
    return settings;
  };
}

const servers: DashboardServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function opened(token?: string): Promise<{ url: string; source: Source }> {
  const source = new Source();
  const server = await openDashboardServer({ host: HOST, port: 0, token, files, source });
  servers.push(server);
  return { url: server.url, source };
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** As a browser would ask, but with any Host header. */
function ask(
  url: string,
  options: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { method = 'GET', headers = {}, body } = options;
    const asking = request(url, { method, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, body: text }));
    });
    asking.on('error', reject);
    asking.end(body);
  });
}

const JSON_TYPE = { 'Content-Type': 'application/json' };

describe('the server of the dashboard', () => {
  it('serves the page, its modules and its documents, all under a strict policy', async () => {
    const { url } = await opened();
    expect(await ask(url)).toMatchObject({ status: 200, body: '<!doctype html>' });
    const module = await ask(`${url}page/main.js`);
    expect(module).toMatchObject({ status: 200, body: 'export {};' });
    expect(module.headers['content-type']).toBe('text/javascript; charset=utf-8');
    expect(module.headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self';/);
    const state = await ask(`${url}state?x=1`);
    expect(state.headers['content-type']).toBe('application/json');
    expect(JSON.parse(state.body)).toEqual({ number: 7 });
  });

  it.each(['nothing', '../package.json', '%2e%2e/package.json', 'toString', '__proto__'])(
    'has nothing at %s',
    async (path) => {
      const { url } = await opened();
      expect((await ask(`${url}${path}`)).status).toBe(404);
    },
  );

  it('answers on loopback to loopback names only: a name of somebody else may have been pointed here', async () => {
    const { url } = await opened();
    const named = (host: string) => ask(url, { headers: { Host: host } }).then(({ status }) => status);
    expect(await named('localhost:8080')).toBe(200);
    expect(await named('[::1]:8080')).toBe(200);
    expect(await named('127.58.1.1')).toBe(200);
    expect(await named('evil.example')).toBe(421);
    expect(await named('127.0.0.1.evil.example')).toBe(421);
    expect(await named('localhost.evil.example:80')).toBe(421);
  });

  it('with a token shows nothing to who does not know it, and everything, by any name, to who does', async () => {
    const { url } = await opened('0123abcd');
    const { origin } = new URL(url);
    expect(url).toBe(`${origin}/0123abcd/`);
    for (const path of ['/', '/state', '/stream', '/0123abcd', '/0123abce/state', '/0123abcdstate']) {
      expect((await ask(`${origin}${path}`)).status).toBe(404);
    }
    const guessed = await ask(`${origin}/settings`, { method: 'POST', headers: JSON_TYPE, body: '{}' });
    expect(guessed.status).toBe(404);
    expect((await ask(`${url}state`, { headers: { Host: 'projector.example' } })).status).toBe(421);
  });

  it('hands settings on and answers with those in force', async () => {
    const { url, source } = await opened();
    const body = '{"scheme":"go-back-n"}';
    const answer = await ask(`${url}settings`, { method: 'POST', headers: JSON_TYPE, body });
    expect(answer).toMatchObject({ status: 200, body });
    expect(source.applied).toEqual([{ scheme: 'go-back-n' }]);
  });

  it.each([
    ['what is not JSON', '{', 400, 'that is not JSON'],
    ['what the source refuses', '3', 400, 'settings are an object'],
    ['what is too long', JSON.stringify('x'.repeat(5000)), 400, 'that is too long'],
    ['a failure of its own', '"broken"', 500, 'the switch is gone'],
  ])('says what is wrong with %s', async (_, body, status, message) => {
    const { url } = await opened();
    const answer = await ask(`${url}settings`, { method: 'POST', headers: JSON_TYPE, body });
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body).error).toContain(message);
  });

  it('takes settings only as what a foreign page cannot send unasked', async () => {
    const { url, source } = await opened();
    const settings = `${url}settings`;
    expect((await ask(settings)).status).toBe(405);
    expect(
      (await ask(settings, { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: '{}' })).status,
    ).toBe(415);
    expect((await ask(`${url}state`, { method: 'POST', headers: JSON_TYPE, body: '{}' })).status).toBe(405);
    expect(source.applied).toEqual([]);
  });

  it('has no settings where the source has none', async () => {
    const source = { ...new Source(), subscribe: () => () => {}, apply: undefined };
    const server = await openDashboardServer({ host: HOST, port: 0, token: undefined, files, source });
    servers.push(server);
    const answer = await ask(`${server.url}settings`, { method: 'POST', headers: JSON_TYPE, body: '{}' });
    expect(answer.status).toBe(405);
    expect((await ask(`${server.url}settings`)).status).toBe(404);
  });

  it('streams messages to whoever listens, until they go', async () => {
    const { url, source } = await opened();
    const abort = new AbortController();
    const response = await fetch(`${url}stream`, { signal: abort.signal });
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value).toBe('retry: 1000\n\n');
    for (const send of source.listeners) send('sample', { text: 'two\nlines' });
    expect((await reader.read()).value).toBe('event: sample\ndata: {"text":"two\\nlines"}\n\n');
    abort.abort();
    await eventually(() => source.listeners.size === 0);
  });

  it('has a limit of streams', async () => {
    const { url } = await opened();
    const abort = new AbortController();
    const open = () => fetch(`${url}stream`, { signal: abort.signal });
    const first = await Promise.all(Array.from({ length: 16 }, open));
    expect(first.map(({ status }) => status)).toEqual(Array(16).fill(200));
    expect((await open()).status).toBe(503);
    abort.abort();
  });

  it('says when its port is taken', async () => {
    const { url, source } = await opened();
    const port = Number(new URL(url).port);
    await expect(openDashboardServer({ host: HOST, port, token: undefined, files, source })).rejects.toMatchObject({
      code: 'ERR_ROCE_IO',
    });
  });
});

describe('a server-sent event', () => {
  it('is a name, one line of JSON and an empty line', () => {
    expect(serverSentEvent('event', { text: 'a\r\nb' })).toBe('event: event\ndata: {"text":"a\\r\\nb"}\n\n');
  });
});
