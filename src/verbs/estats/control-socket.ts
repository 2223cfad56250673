/** The caller supplies the answers: `GET /estats.json` is a document with a `kind` (`watched.ts`). */

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

export interface ListeningServer {
  readonly at: string;
  close(): Promise<void>;
}

/** Keeps no process alive. */
export async function openControlSocket(
  handler: RequestListener,
  name = `${process.pid}-${++socketsOpened}.sock`,
): Promise<ListeningServer> {
  const directory = controlDirectoryPath();
  await openControlDirectory(directory);
  const at = join(directory, name);
  await unlink(at).catch(() => {});
  const server = await listen(handler, { path: at });
  await chmod(at, OWNER_READS_AND_WRITES);
  return { at, close: () => close(server) };
}

export interface HttpPlace {
  readonly host: string;
  readonly port: number;
  readonly allowHosts?: readonly string[];
}

/** For all clients that use an address, `localhost` or an allowed name as host; others get 421 (RFC 9110 §15.5.20). */
export async function openHttp(handler: RequestListener, place: HttpPlace): Promise<ListeningServer> {
  const { host, port, allowHosts } = place;
  const guarded: RequestListener = (request, response) => {
    if (isOwnName(request.headers.host, allowHosts)) return handler(request, response);
    request.resume();
    send(response, 421, 'text/plain', 'use its address, or a host name given by --allow-host\n');
  };
  const server = await listen(guarded, { host, port });
  return { at: httpUrlOf(server), close: () => close(server) };
}

export function serveDocument(document: () => unknown): Promise<ListeningServer> {
  return openControlSocket(async (request, response) => {
    request.resume();
    const path = request.url?.replace(/\?.*$/, '');
    if ((request.method !== 'GET' && request.method !== 'HEAD') || path !== '/estats.json') {
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

export function sendJson(response: ServerResponse, value: unknown): void {
  send(response, 200, 'application/json', `${JSON.stringify(value)}\n`);
}

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

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

function httpUrlOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
