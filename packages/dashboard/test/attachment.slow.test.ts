import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type ListeningServer,
  openControlSocket,
  openHttp,
  send,
  sendJson,
  serveDocument,
} from '../../../src/verbs/estats/control-socket.js';
import { RuntimeFolder } from '../../../test/support/runtime-folder.js';
import { Attachment } from '../src/attached/attachment.js';
import { clusterDocument, diskDocument, endpointDocument, switchDocument } from './watched-documents.js';

const LIMIT = { timeout: 15_000 };

let runtime: RuntimeFolder;
const servers: ListeningServer[] = [];

beforeEach(async () => {
  runtime = await RuntimeFolder.take('attach');
});

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
  await runtime[Symbol.asyncDispose]();
});

async function opened<T extends ListeningServer>(server: Promise<T>): Promise<T> {
  servers.push(await server);
  return server;
}

const secondsSince = (startMs: number) => (performance.now() - startMs) / 1000;

/** A program whose uptime goes on. */
function running<D extends { uptimeSeconds: number }>(document: D): Promise<ListeningServer> {
  const startMs = performance.now();
  return opened(serveDocument(() => ({ ...document, uptimeSeconds: secondsSince(startMs) })));
}

async function attached(...which: string[]) {
  const attachment = new Attachment(which, { lookIntervalMs: 50 });
  await attachment.open();
  const kinds = () =>
    attachment.documents
      .state()
      .programs.map(({ kind }) => kind)
      .sort();
  return { attachment, kinds };
}

describe('dashboard --attach', { timeout: 30_000 }, () => {
  it('finds programs of all kinds as they come, reads them again and again, and loses them as they go', async () => {
    const endpoint = await running(endpointDocument({}));
    const { attachment, kinds } = await attached();
    await using _closing = attachment;
    const told: string[] = [];
    attachment.subscribe((name) => told.push(name));
    await expect.poll(kinds, LIMIT).toEqual(['endpoint']);
    await running(switchDocument(1, { a: {} }));
    await running(diskDocument(1, {}));
    await running(clusterDocument(1));
    await expect.poll(kinds, LIMIT).toEqual(['cluster', 'disk', 'endpoint', 'switch']);
    await expect.poll(() => attachment.documents.state().programs[0].samples.length, LIMIT).toBeGreaterThan(1);
    await endpoint.close();
    await expect.poll(kinds, LIMIT).toEqual(['cluster', 'disk', 'switch']);
    expect(new Set(told)).toEqual(new Set(['program', 'event', 'gone']));
    expect(attachment.documents.state().events.map(({ kind }) => kind)).toEqual([
      'appeared',
      'appeared',
      'appeared',
      'appeared',
      'ended',
    ]);
  });

  it('follows only those that were named: by number, address, socket or URL', async () => {
    const one = await running(endpointDocument({ pid: 1 }));
    await running(switchDocument(1, { a: {} }));
    await running(diskDocument(1, {}));
    const startMs = performance.now();
    const http = await opened(
      openHttp(
        (_, response) => sendJson(response, endpointDocument({ pid: 3, uptimeSeconds: secondsSince(startMs) })),
        {
          host: '127.61.3.1',
          port: 0,
        },
      ),
    );
    for (const [which, found] of [
      [['8'], ['switch']],
      [['192.0.2.9'], ['disk']],
      [[one.at], ['endpoint']],
      [
        [http.at, '8'],
        ['endpoint', 'switch'],
      ],
    ] as const) {
      const { attachment, kinds } = await attached(...which);
      await using _closing = attachment;
      await expect.poll(kinds, LIMIT).toEqual(found);
      await expect.poll(() => attachment.documents.state().programs[0].samples.length, LIMIT).toBeGreaterThan(0);
      expect(kinds()).toEqual(found);
    }
  });

  it('says so when a program does not answer, and goes on with the others and with it when it does', async () => {
    let isStuck = false;
    const startMs = performance.now();
    await opened(
      openControlSocket((_, response) => {
        if (!isStuck) sendJson(response, endpointDocument({ pid: 1, uptimeSeconds: secondsSince(startMs) }));
      }),
    );
    await running(switchDocument(1, { a: {} }));
    const { attachment, kinds } = await attached();
    await using _closing = attachment;
    await expect.poll(kinds, LIMIT).toEqual(['endpoint', 'switch']);
    const of = (kind: string) => attachment.documents.state().programs.find((program) => program.kind === kind)!;
    isStuck = true;
    await expect.poll(() => of('endpoint').health.text, LIMIT).toBe('does not answer');
    const samples = of('switch').samples.length;
    await expect.poll(() => of('switch').samples.length, LIMIT).toBeGreaterThan(samples);
    isStuck = false;
    await expect.poll(() => of('endpoint').health.text, LIMIT).toBe('good');
  });

  it('passes by what is no program of this version', async () => {
    await opened(serveDocument(() => ({ kind: 'teapot', version: 1 })));
    await opened(serveDocument(() => ({ ...switchDocument(1, {}), version: 2 })));
    await running(diskDocument(1, {}));
    const { attachment, kinds } = await attached();
    await using _closing = attachment;
    await expect.poll(kinds, LIMIT).toEqual(['disk']);
    await expect.poll(() => attachment.documents.state().programs[0].samples.length, LIMIT).toBeGreaterThan(0);
    expect(kinds()).toEqual(['disk']);
  });

  it('passes by managers that say what is no document, and follows them when they do', async () => {
    const document = clusterDocument(1);
    const { status } = document;
    const text = JSON.stringify(document);
    const bad: ReadonlyArray<readonly [string, string]> = [
      ['of another shape', JSON.stringify({ ...document, status: { ...status, nodes: 'three' } })],
      ['with a node without a number', text.replace('"node":1,', '')],
      ['with a state that there is not', text.replace('"state":"up"', '"state":"<b>up</b>"')],
      ['cut off', text.slice(0, -20)],
      ['no JSON', '<html>'],
      ['a number', '1'],
    ];
    let answer = text;
    const startMs = performance.now();
    await opened(
      openControlSocket((_, response) => {
        const uptime = `"uptimeSeconds":${secondsSince(startMs)}`;
        send(response, 200, 'application/json', answer.replace(/"uptimeSeconds":1\b/, uptime));
      }),
    );
    await running(diskDocument(1, {}));
    const { attachment, kinds } = await attached();
    await using _closing = attachment;
    for (const [what, words] of bad) {
      answer = text;
      await expect.poll(kinds, { ...LIMIT, message: `before one ${what}` }).toEqual(['cluster', 'disk']);
      answer = words;
      await expect.poll(kinds, { ...LIMIT, message: what }).toEqual(['disk']);
    }
  });

  it('keeps a manager whose answer breaks off on its way, as one that does not answer', async () => {
    const startMs = performance.now();
    let isBroken = false;
    await opened(
      openControlSocket((_, response) => {
        const text = JSON.stringify(clusterDocument(secondsSince(startMs)));
        if (!isBroken) return void send(response, 200, 'application/json', text);
        response.writeHead(200, { 'content-length': text.length });
        response.write(text.slice(0, 100), () => response.destroy());
      }),
    );
    const { attachment } = await attached();
    await using _closing = attachment;
    const health = () => attachment.documents.state().programs.map((program) => program.health.text);
    await expect.poll(health, LIMIT).toEqual(['good']);
    isBroken = true;
    await expect.poll(health, LIMIT).toEqual(['does not answer']);
    isBroken = false;
    await expect.poll(health, LIMIT).toEqual(['good']);
  });
});
