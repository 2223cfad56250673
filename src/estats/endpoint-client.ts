/** Finds running endpoints by their control sockets and asks them. */

import { readdir, unlink } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import path from 'node:path';
import { RoceError } from '../core/errors.js';
import { checkControlDirectory, controlDirectoryPath } from './control-directory.js';
import { type EstatsSnapshot, parseSnapshot } from './snapshot.js';

const TIMEOUT_MS = 10_000;
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

/** Where an endpoint answers: a control socket, or the URL it serves HTTP at. */
export type EndpointTarget = { readonly socketPath: string } | { readonly url: string };

/** The text that the endpoint answers. Throws ERR_ROCE_CONNECT when nobody does, ERR_ROCE_INVALID_ARGUMENT when it refuses. */
export function askEndpoint(target: EndpointTarget, pathAndQuery: string, method = 'GET'): Promise<string> {
  const [url, options] =
    'socketPath' in target
      ? [new URL(pathAndQuery, 'http://endpoint'), { socketPath: target.socketPath }]
      : [new URL(pathAndQuery, target.url), {}];
  return new Promise((resolve, reject) => {
    const fail = (cause: Error) =>
      reject(new RoceError('ERR_ROCE_CONNECT', `no endpoint answers at ${nameOf(target)}`, undefined, { cause }));
    const asked = request(url, { ...options, method, agent: false, timeout: TIMEOUT_MS }, (response) => {
      readAll(response).then((text) => {
        if (response.statusCode === 200) resolve(text);
        else reject(new RoceError('ERR_ROCE_INVALID_ARGUMENT', text.trim()));
      }, fail);
    });
    asked.on('timeout', () => asked.destroy(new Error('timeout')));
    asked.on('error', fail);
    asked.end();
  });
}

async function readAll(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) throw new Error('the answer is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function nameOf(target: EndpointTarget): string {
  return 'socketPath' in target ? target.socketPath : target.url;
}

/** Throws as {@link askEndpoint}, and ERR_ROCE_MISMATCH when the answer is not a snapshot. */
export async function askSnapshot(target: EndpointTarget, minutes: number): Promise<EstatsSnapshot> {
  const text = await askEndpoint(target, `/estats.json?minutes=${minutes}`);
  try {
    return parseSnapshot(JSON.parse(text));
  } catch (cause) {
    throw new RoceError('ERR_ROCE_MISMATCH', `${nameOf(target)} is not an endpoint of this version`, undefined, {
      cause,
    });
  }
}

/** A running endpoint of this user. */
export interface RunningEndpoint {
  readonly socketPath: string;
  readonly snapshot: EstatsSnapshot;
}

/** All running endpoints of this user, by process number. Sockets that a dead process left behind are removed. */
export async function findEndpoints(minutes: number): Promise<RunningEndpoint[]> {
  const directory = controlDirectoryPath();
  let names: string[];
  try {
    names = (await readdir(directory)).filter((name) => name.endsWith('.sock'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  await checkControlDirectory(directory);
  const found = await Promise.all(
    names.map(async (name): Promise<RunningEndpoint | undefined> => {
      const socketPath = path.join(directory, name);
      try {
        return { socketPath, snapshot: await askSnapshot({ socketPath }, minutes) };
      } catch (error) {
        await removeIfDead(socketPath, error);
        return undefined;
      }
    }),
  );
  return found.filter((endpoint) => endpoint !== undefined).sort((a, b) => a.snapshot.pid - b.snapshot.pid);
}

/** ECONNREFUSED from a Unix socket: nobody listens any more. An endpoint that is only slow, or of another version, keeps its socket. */
async function removeIfDead(socketPath: string, error: unknown): Promise<void> {
  const cause = (error as Error).cause as NodeJS.ErrnoException | undefined;
  if (cause?.code === 'ECONNREFUSED') await unlink(socketPath).catch(() => {});
}
