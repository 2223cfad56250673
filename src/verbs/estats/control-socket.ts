/**
 * How a program lets itself be watched: HTTP on a Unix socket in the control directory, which only its owner can open, and over TCP where that
 * was asked for. What is answered is the caller's: `GET /estats.json` is a document that says its kind (`watched.ts`).
 */

import { chmod, unlink } from 'node:fs/promises';
import type { RequestListener, Server, ServerResponse } from 'node:http';
import type { AddressInfo, ListenOptions } from 'node:net';
import { join } from 'node:path';
import process from 'node:process';
import { RoceError } from '../../core/errors.js';
import { controlDirectoryPath, openControlDirectory } from './control-directory.js';
import { boundedHttpServer, isOwnName } from './http-server.js';

const OWNER_READS_AND_WRITES = 0o600;

let socketsOpened = 0;

/** A server that has been started. */
export interface ListeningServer {
  /** Path of the Unix socket, or `http://HOST:PORT`. */
  readonly at: string;
  /** Ends connections and removes the socket. */
  close(): Promise<void>;
}

/**
 * A socket of its own in the control directory; one of another `name` than `*.sock` is not that of a watched program. Throws ERR_ROCE_IO when it cannot be
 * had. Keeps no process alive.
 */
export async function openControlSocket(
  handler: RequestListener,
  name = `${process.pid}-${++socketsOpened}.sock`,
): Promise<ListeningServer> {
  const directory = controlDirectoryPath();
  await openControlDirectory(directory);
  const at = join(directory, name);
  await unlink(at).catch(() => {}); // Of a process that did not clean up.
  const server = await listen(handler, { path: at });
  await chmod(at, OWNER_READS_AND_WRITES);
  return { at, close: () => close(server) };
}

/** Where HTTP is served for everybody who can connect. */
export interface HttpPlace {
  /** Address to bind. */
  readonly host: string;
  /** TCP port; 0 takes a free one. */
  readonly port: number;
  /** Names by which it may be asked for, beside addresses and `localhost`. */
  readonly allowHosts?: readonly string[];
}

/**
 * For everybody who can connect and asks for it by an address, `localhost` or an allowed name; others get 421 (RFC 9110 §15.5.20). Throws
 * ERR_ROCE_IO when the port cannot be had. Keeps no process alive.
 */
export async function openHttp(handler: RequestListener, place: HttpPlace): Promise<ListeningServer> {
  const { host, port, allowHosts } = place;
  const guarded: RequestListener = (request, response) => {
    if (isOwnName(request.headers.host, allowHosts)) return handler(request, response);
    request.resume();
    send(response, 421, 'text/plain', 'ask for this by its address, or by a name it was told to answer to\n');
  };
  const server = await listen(guarded, { host, port });
  return { at: addressOf(server), close: () => close(server) };
}

/** The control socket of a program that answers `GET /estats.json` with this document, and nothing else. It is made when it is asked for; where that fails, the answer is 500. */
export function serveDocument(document: () => unknown): Promise<ListeningServer> {
  return openControlSocket(async (request, response) => {
    request.resume();
    const path = request.url?.replace(/\?.*$/, '');
    if (request.method !== 'GET' || path !== '/estats.json') {
      send(response, 404, 'text/plain', `there is no ${request.method} ${path} here\n`);
      return;
    }
    try {
      sendJson(response, await document());
    } catch (error) {
      send(response, 500, 'text/plain', `${(error as Error).message}\n`);
    }
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
  const server = boundedHttpServer(handler);
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

function addressOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
