/** Lets others look at an endpoint's telemetry while it runs: a control socket for its owner, and HTTP where that was asked for. */

import { chmod, unlink } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, ListenOptions } from 'node:net';
import path from 'node:path';
import process from 'node:process';
import { RoceError } from '../core/errors.js';
import { controlDirectoryPath, openControlDirectory } from './control-directory.js';
import type { Estats } from './estats.js';
import { estatsHandlers } from './http-handler.js';
import { measureLoopDelay } from './loop-delay.js';
import type { EndpointIdentity } from './snapshot.js';

const OWNER_READS_AND_WRITES = 0o600;
/** Who does not finish a request in this time is cut off. */
const REQUEST_TIMEOUT_MS = 10_000;
const CONNECTIONS_MAX = 32;

let socketsOpened = 0;

export interface EndpointServerOptions {
  /** `HOST:PORT` to serve metrics on, for everybody who can connect; port 0 takes a free one. Default: only the control socket. */
  readonly http?: { readonly host: string; readonly port: number };
}

export interface EndpointServer {
  /** The control socket: HTTP over a Unix socket that only this user can open. */
  readonly socketPath: string;
  /** Where HTTP is served, `http://HOST:PORT`; undefined when it is not. */
  readonly httpUrl: string | undefined;
  close(): Promise<void>;
}

/** Throws ERR_ROCE_IO when a socket cannot be had; then nothing stays open. Keeps no process alive. */
export async function serveEstats(
  estats: Estats,
  identity: EndpointIdentity,
  options: EndpointServerOptions,
): Promise<EndpointServer> {
  const directory = controlDirectoryPath();
  await openControlDirectory(directory);
  const socketPath = path.join(directory, `${process.pid}-${++socketsOpened}.sock`);
  const handlers = estatsHandlers(estats, identity);
  await unlink(socketPath).catch(() => {}); // Of a process of the same number that did not clean up.
  const control = await listen(handlers.control, { path: socketPath });
  await chmod(socketPath, OWNER_READS_AND_WRITES);
  let http: Server | undefined;
  try {
    if (options.http !== undefined) http = await listen(handlers.readOnly, options.http);
  } catch (error) {
    await close(control);
    throw error;
  }
  const stopMeasuring = measureLoopDelay((ns, agoNs) => estats.recordLoopDelay(ns, agoNs));
  return {
    socketPath,
    httpUrl: http === undefined ? undefined : urlOf(http),
    close: async () => {
      stopMeasuring();
      await Promise.all([close(control), http === undefined ? undefined : close(http)]);
    },
  };
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
