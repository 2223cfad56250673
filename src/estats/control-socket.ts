/**
 * How a program lets itself be watched: HTTP on a Unix socket in the control directory, which only its owner can open, and over TCP where that
 * was asked for. What is answered is the caller's: `GET /estats.json` is a document that says its kind (`watched.ts`).
 */

import { chmod, unlink } from 'node:fs/promises';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, ListenOptions } from 'node:net';
import { join } from 'node:path';
import process from 'node:process';
import { RoceError } from '../core/errors.js';
import { controlDirectoryPath, openControlDirectory } from './control-directory.js';

const OWNER_READS_AND_WRITES = 0o600;
/** Who does not finish a request in this time is cut off. */
const REQUEST_TIMEOUT_MS = 10_000;
const CONNECTIONS_MAX = 32;

let socketsOpened = 0;

/** A server that has been started. */
export interface ListeningServer {
  /** Path of the Unix socket, or `http://HOST:PORT`. */
  readonly at: string;
  /** Ends connections and removes the socket. */
  close(): Promise<void>;
}

/** A socket of its own in the control directory. Throws ERR_ROCE_IO when it cannot be had. Keeps no process alive. */
export async function openControlSocket(handler: RequestListener): Promise<ListeningServer> {
  const directory = controlDirectoryPath();
  await openControlDirectory(directory);
  const at = join(directory, `${process.pid}-${++socketsOpened}.sock`);
  await unlink(at).catch(() => {}); // Of a process of the same number that did not clean up.
  const server = await listen(handler, { path: at });
  await chmod(at, OWNER_READS_AND_WRITES);
  return { at, close: () => close(server) };
}

/** For everybody who can connect. Throws ERR_ROCE_IO when the port cannot be had. Keeps no process alive. */
export async function openHttp(
  handler: RequestListener,
  where: { readonly host: string; readonly port: number },
): Promise<ListeningServer> {
  const server = await listen(handler, where);
  return { at: urlOf(server), close: () => close(server) };
}

/** The control socket of a program that answers `GET /estats.json` with this document, and nothing else. */
export function serveDocument(document: () => unknown): Promise<ListeningServer> {
  return openControlSocket((request, response) => {
    request.resume();
    const path = request.url?.replace(/\?.*$/, '');
    if (request.method === 'GET' && path === '/estats.json') sendJson(response, document());
    else send(response, 404, 'text/plain', `there is no ${request.method} ${path} here\n`);
  });
}

/** Answers 200 with `value` as JSON. */
export function sendJson(response: ServerResponse, value: unknown): void {
  send(response, 200, 'application/json', `${JSON.stringify(value)}\n`);
}

/** Answers with `body`, not to be cached. */
export function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, {
    'content-type': type,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  response.end(body);
}

function listen(handler: RequestListener, where: ListenOptions): Promise<Server> {
  const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS, keepAliveTimeout: 1000 }, handler);
  server.maxConnections = CONNECTIONS_MAX;
  server.unref();
  server.on('connection', (socket) => socket.unref());
  return new Promise((resolve, reject) => {
    server.on('error', (cause) =>
      reject(new RoceError('ERR_ROCE_IO', `cannot serve telemetry: ${cause.message}`, undefined, { cause })),
    );
    server.listen(where, () => resolve(server));
  });
}

/** Removes the Unix socket, too. */
function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

function urlOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
