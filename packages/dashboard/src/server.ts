/**
 * The dashboard's web server: a page, the documents it asks for, a stream of server-sent events (WHATWG HTML §9.2), and one place to post
 * settings. It knows nothing about what it shows.
 *
 * Who may look: on loopback whoever asks for it by an address, `localhost` or a name it was told, so that no other web site can by letting its
 * own name point here; on any other address whoever knows the token, which is the first part of every path. Pages of other sites get neither
 * streams nor settings. Everything is bounded: connections, the time of a request, streams, bodies, waiting output.
 */

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isArgumentError, RoceError } from 'rocev2/internal/core';
import { boundedHttpServer, isFromOtherSite, isOwnName, urlOf } from 'rocev2/internal/estats';

/** A document that is served as it is. */
export interface PageFile {
  /** Media type. */
  readonly type: string;
  /** Sent as it is. */
  readonly body: string | Buffer;
}

/** What the server shows. */
export interface DashboardSource {
  /** Documents by path, each made when it is asked for. */
  readonly documents: Readonly<Record<string, () => unknown>>;
  /** Calls `send` with every message from now on; returns how to stop that. */
  subscribe(send: (name: string, data: unknown) => void): () => void;
  /**
   * Changes settings and resolves with those in force. Rejects with a code of wrong arguments (`isArgumentError`) for what makes no
   * sense. Undefined where there is nothing to set.
   */
  readonly apply: ((settings: unknown) => Promise<unknown>) | undefined;
}

interface DashboardServerOptions {
  readonly host: string;
  /** 0: of the system's choice. */
  readonly port: number;
  /** The first part of every path; undefined on loopback. */
  readonly token: string | undefined;
  /** Names by which it may be asked for on loopback, beside addresses and `localhost`. */
  readonly allowHosts?: readonly string[];
  /** By path; `index.html` is the page itself. */
  readonly files: ReadonlyMap<string, PageFile>;
  readonly source: DashboardSource;
}

/** A dashboard that is being served. */
export interface DashboardServer {
  /** What to type into a browser. */
  readonly url: string;
  /** Ends all streams and stops listening. */
  close(): Promise<void>;
}

const STREAMS_MAX = 16;
const BODY_BYTES_MAX = 4096;
/** A reader that is so far behind is let go; its browser connects again. */
const UNREAD_BYTES_MAX = 1 << 20;

const SECURITY_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
} as const;

/** Listens, and rejects with ERR_ROCE_IO when it cannot. */
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
        server.closeAllConnections(); // Streams never end by themselves.
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
  readonly #isPrivate: boolean;
  readonly #allowHosts: readonly string[];
  readonly #files: ReadonlyMap<string, PageFile>;
  readonly #source: DashboardSource;
  #streams = 0;

  constructor({ token, allowHosts = [], files, source }: DashboardServerOptions) {
    this.#prefix = token === undefined ? '/' : `/${token}/`;
    this.#isPrivate = token !== undefined;
    this.#allowHosts = allowHosts;
    this.#files = files;
    this.#source = source;
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
    const url = urlOf(request);
    if (url === undefined) return fail(response, 400, 'that is no URL');
    const path = this.#pathOf(url, request);
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

  /** Below the prefix; undefined for who must not look, as for what does not exist. */
  #pathOf({ pathname }: URL, { headers }: IncomingMessage): string | undefined {
    if (!pathname.startsWith(this.#prefix)) return undefined;
    if (!this.#isPrivate && !isOwnName(headers.host, this.#allowHosts)) return undefined;
    return pathname.slice(this.#prefix.length);
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
  // A page of another site cannot send this type without being asked first whether it may (CORS), and it may not.
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
