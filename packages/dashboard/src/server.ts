/**
 * The dashboard's web server: a page, documents, server-sent events (WHATWG HTML §9.2) and one endpoint for settings.
 * It accepts requests by address, `localhost` or a configured name, which prevents DNS rebinding. With a token, paths
 * must begin with it. Cross-origin pages get neither streams nor settings. Connections,
 * request time, streams, bodies and output buffers are bounded.
 */

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isArgumentError, RoceError } from 'rocev2/internal/core';
import { boundedHttpServer, isFromOtherSite, isOwnName, urlOf } from 'rocev2/internal/estats';

export interface PageFile {
  readonly type: string;
  readonly body: string | Buffer;
}

export interface DashboardSource {
  readonly documents: Readonly<Record<string, () => unknown>>;
  subscribe(send: (name: string, data: unknown) => void): () => void;
  readonly apply: ((settings: unknown) => Promise<unknown>) | undefined;
}

interface DashboardServerOptions {
  readonly host: string;
  readonly port: number;
  readonly token: string | undefined;
  readonly allowHosts?: readonly string[];
  readonly files: ReadonlyMap<string, PageFile>;
  readonly source: DashboardSource;
}

export interface DashboardServer {
  readonly url: string;
  close(): Promise<void>;
}

const STREAMS_MAX = 16;
const BODY_BYTES_MAX = 4096;
const UNREAD_BYTES_MAX = 1 << 20;

const SECURITY_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
} as const;

export async function openDashboardServer(options: DashboardServerOptions): Promise<DashboardServer> {
  const dashboard = new Dashboard(options);
  const server = boundedHttpServer((request, response) => void dashboard.answer(request, response));
  await listening(server, options);
  const { port } = server.address() as AddressInfo;
  const name = options.host.includes(':') ? `[${options.host}]` : options.host;
  return {
    url: `http://${name}:${port}/${options.token === undefined ? '' : `${options.token}/`}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listening(server: Server, { host, port }: DashboardServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      reject(
        new RoceError('ERR_ROCE_IO', `cannot listen on ${host} port ${port}: ${cause.message}`, undefined, { cause }),
      );
    });
    server.listen(port, host, resolve);
  });
}

class Dashboard {
  readonly #prefix: string;
  readonly #allowHosts: readonly string[];
  readonly #files: ReadonlyMap<string, PageFile>;
  readonly #source: DashboardSource;
  #streams = 0;

  constructor({ token, allowHosts = [], files, source }: DashboardServerOptions) {
    this.#prefix = token === undefined ? '/' : `/${token}/`;
    this.#allowHosts = allowHosts;
    this.#files = files;
    this.#source = source;
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
    const url = urlOf(request);
    if (url === undefined) return fail(response, 400, 'that is no URL');
    if (!isOwnName(request.headers.host, this.#allowHosts)) {
      return fail(response, 421, 'use the address of this server, or a name that --allow-host lists');
    }
    const path = this.#pathOf(url);
    if (path === undefined) return fail(response, 404, 'there is nothing here');
    if (isFromOtherSite(request) && (path === 'stream' || path === 'settings')) {
      return fail(response, 403, 'a page of another site may not have this');
    }
    const { apply } = this.#source;
    if (path === 'settings' && apply !== undefined) return settings(request, response, apply);
    if (request.method !== 'GET' && request.method !== 'HEAD') return fail(response, 405, 'this can only be read');
    if (path === 'stream') return this.#stream(response);
    const file = this.#files.get(path === '' ? 'index.html' : path);
    if (file !== undefined) return send(response, 200, file.type, file.body);
    const document = Object.hasOwn(this.#source.documents, path) ? this.#source.documents[path] : undefined;
    if (document === undefined) return fail(response, 404, 'there is nothing here');
    try {
      sendJson(response, 200, await document());
    } catch (error) {
      fail(response, 500, (error as Error).message);
    }
  }

  #pathOf({ pathname }: URL): string | undefined {
    return pathname.startsWith(this.#prefix) ? pathname.slice(this.#prefix.length) : undefined;
  }

  #stream(response: ServerResponse): void {
    if (this.#streams >= STREAMS_MAX) {
      fail(response, 503, `${STREAMS_MAX} pages are open already`);
      return;
    }
    this.#streams++;
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write('retry: 1000\n\n');
    const unsubscribe = this.#source.subscribe((name, data) => {
      if (response.writableLength > UNREAD_BYTES_MAX) response.destroy();
      else response.write(serverSentEvent(name, data));
    });
    response.once('close', () => {
      this.#streams--;
      unsubscribe();
    });
  }
}

async function settings(
  request: IncomingMessage,
  response: ServerResponse,
  apply: (settings: unknown) => Promise<unknown>,
): Promise<void> {
  if (request.method !== 'POST') return fail(response, 405, 'settings are posted');
  // A page of another site cannot send this type without a CORS preflight, which is refused.
  if (request.headers['content-type'] !== 'application/json') return fail(response, 415, 'post application/json');
  try {
    sendJson(response, 200, await apply(await bodyOf(request)));
  } catch (error) {
    fail(response, isArgumentError(error) ? 400 : 500, (error as Error).message);
  }
}

/** One event in the form of the stream; the data is one line, because JSON escapes line ends. */
export function serverSentEvent(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BODY_BYTES_MAX) throw new RoceError('ERR_ROCE_OUT_OF_RANGE', 'that is too long');
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    throw new RoceError('ERR_ROCE_MALFORMED', 'that is not JSON');
  }
}

function send(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  response.writeHead(status, { 'Content-Type': type });
  response.end(body);
}

function sendJson(response: ServerResponse, status: number, document: unknown): void {
  send(response, status, 'application/json', JSON.stringify(document));
}

function fail(response: ServerResponse, status: number, message: string): void {
  sendJson(response, status, { error: message });
}
