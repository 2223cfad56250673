/**
 * HTTP on a Unix socket in the control directory, through which `rocev2 disk create`, `resize`, `rm` and `ls` reach a
 * running server. Only the user who runs the server can open it.
 */

import { readdir } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import path from 'node:path';
import { askProgram, removeIfDead } from '@rocev2/command';
import { RoceError } from 'rocev2/internal/core';
import {
  checkControlDirectory,
  controlDirectoryPath,
  type ListeningServer,
  openControlSocket,
  send,
  sendJson,
} from 'rocev2/internal/estats';
import type { StorageServer } from 'rocev2/internal/storage-rpc';
import { parseDiskEntry } from './disk-entries.js';
import type { DiskStore, ListedDisk } from './disk-store.js';

const SUFFIX = '.disks';
/** Creating a thick disk takes long. */
const CHANGE_TIMEOUT_MS = 3_600_000;

export function serveDiskControl(at: string, store: DiskStore, server: StorageServer): Promise<ListeningServer> {
  return openControlSocket((request, response) => {
    request.resume();
    void answer(request, store, server).then(
      () => sendJson(response, store.list(server)),
      (error: unknown) => refuse(response, error),
    );
  }, `${at}${SUFFIX}`);
}

async function answer(request: IncomingMessage, store: DiskStore, server: StorageServer): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://server');
  const parameter = (name: string): string => searchParams.get(name) ?? '';
  switch (`${request.method} ${pathname}`) {
    case 'GET /disks':
      return;
    case 'POST /create':
      return store.create(server, parseDiskEntry(parameter('disk')));
    case 'POST /resize':
      return store.resize(server, parameter('name'), Number(parameter('bytes')));
    case 'POST /remove':
      return store.remove(server, parameter('name'), parameter('force') === 'true');
    default:
      throw new RoceError('ERR_ROCE_NOT_FOUND', `there is no ${request.method} ${pathname} here`);
  }
}

function refuse(response: ServerResponse, error: unknown): void {
  const { message } = error as Error;
  if (error instanceof RoceError)
    send(response, 400, 'application/json', JSON.stringify({ code: error.code, message }));
  else send(response, 500, 'text/plain', message);
}

/** A running server of this user. */
export interface DiskServer {
  /** `HOST:PORT`. */
  readonly at: string;
  /** Its named disks. */
  readonly disks: readonly ListedDisk[];
}

export async function findDiskServers(): Promise<DiskServer[]> {
  const directory = controlDirectoryPath();
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (names === undefined) return [];
  await checkControlDirectory(directory);
  const addresses = names.filter((name) => name.endsWith(SUFFIX)).map((name) => name.slice(0, -SUFFIX.length));
  const found = await Promise.all(
    addresses.map(async (at) => {
      try {
        return [{ at, disks: await ask(at, 'GET', '/disks') }];
      } catch (error) {
        await removeIfDead(socketOf(at), error);
        return [];
      }
    }),
  );
  return found.flat().sort((a, b) => a.at.localeCompare(b.at));
}

export async function chooseDiskServer(at: string | undefined): Promise<string> {
  const servers = (await findDiskServers()).filter((server) => at === undefined || server.at === at);
  if (servers.length === 1) return servers[0].at;
  if (servers.length === 0) {
    const which = at === undefined ? 'with named disks' : `at ${at}`;
    const hint = "start one with 'rocev2 disk serve --disk NAME=STORE', as this user";
    throw new RoceError('ERR_ROCE_CONNECT', `no storage server ${which} runs here`, hint);
  }
  const names = servers.map((server) => server.at).join(', ');
  throw new RoceError('ERR_ROCE_CONFLICT', 'several storage servers run here', `choose one with --server: ${names}`);
}

export async function changeDisks(
  at: string,
  action: 'create' | 'resize' | 'remove',
  parameters: Readonly<Record<string, string>>,
): Promise<readonly ListedDisk[]> {
  return ask(at, 'POST', `/${action}?${new URLSearchParams(parameters)}`);
}

async function ask(at: string, method: string, pathAndQuery: string): Promise<readonly ListedDisk[]> {
  try {
    return JSON.parse(await askProgram({ socketPath: socketOf(at) }, pathAndQuery, method, CHANGE_TIMEOUT_MS));
  } catch (error) {
    throw refusalIn(error);
  }
}

function refusalIn(error: unknown): unknown {
  if (!(error instanceof RoceError) || error.code !== 'ERR_ROCE_INVALID_ARGUMENT') return error;
  try {
    const { code, message } = JSON.parse(error.message);
    return new RoceError(code, message);
  } catch {
    return error;
  }
}

function socketOf(at: string): string {
  return path.join(controlDirectoryPath(), `${at}${SUFFIX}`);
}
