import { readdir, unlink } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import path from 'node:path';
import { RoceError } from 'rocev2/internal/core';
import { checkControlDirectory, controlDirectoryPath, type EstatsSnapshot } from 'rocev2/internal/estats';
import { parseWatched, type WatchedDocument } from './watched.js';

const TIMEOUT_MS = 10_000;
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

export type ProgramTarget =
  | {
      readonly socketPath: string;
    }
  | {
      readonly url: string;
    };

export function askProgram(
  target: ProgramTarget,
  pathAndQuery: string,
  method = 'GET',
  timeoutMs = TIMEOUT_MS,
): Promise<string> {
  const [url, options] =
    'socketPath' in target
      ? [new URL(pathAndQuery, 'http://endpoint'), { socketPath: target.socketPath }]
      : [new URL(pathAndQuery, target.url), {}];
  return new Promise((resolve, reject) => {
    const fail = (cause: Error) =>
      reject(new RoceError('ERR_ROCE_CONNECT', `nobody answers at ${nameOf(target)}`, undefined, { cause }));
    const asked = request(url, { ...options, method, agent: false, timeout: timeoutMs }, (response) => {
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

function nameOf(target: ProgramTarget): string {
  return 'socketPath' in target ? target.socketPath : target.url;
}

export async function askDocument(
  target: ProgramTarget,
  minutes: number,
  timeoutMs = TIMEOUT_MS,
): Promise<WatchedDocument> {
  const text = await askProgram(target, `/estats.json?minutes=${minutes}`, 'GET', timeoutMs);
  try {
    return parseWatched(JSON.parse(text));
  } catch (cause) {
    throw new RoceError('ERR_ROCE_MISMATCH', `${nameOf(target)} is not a program of this version`, undefined, {
      cause,
    });
  }
}

export async function askSnapshot(target: ProgramTarget, minutes: number): Promise<EstatsSnapshot> {
  const document = await askDocument(target, minutes);
  if (document.kind === 'endpoint') return document;
  throw new RoceError(
    'ERR_ROCE_MISMATCH',
    `${nameOf(target)} is a ${document.kind}, not an endpoint`,
    "'rocev2 dashboard --attach' shows it",
  );
}

export async function controlSockets(): Promise<string[]> {
  const directory = controlDirectoryPath();
  let names: string[];
  try {
    names = (await readdir(directory)).filter((name) => name.endsWith('.sock'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  await checkControlDirectory(directory);
  return names.map((name) => path.join(directory, name));
}

interface RunningProgram {
  readonly socketPath: string;
  readonly document: WatchedDocument;
}

/** Sockets that a dead process left behind are removed. */
export async function findPrograms(minutes: number): Promise<RunningProgram[]> {
  const found = await Promise.all(
    (await controlSockets()).map(async (socketPath): Promise<RunningProgram | undefined> => {
      try {
        return { socketPath, document: await askDocument({ socketPath }, minutes) };
      } catch (error) {
        await removeIfDead(socketPath, error);
        return undefined;
      }
    }),
  );
  return found.filter((program) => program !== undefined).sort((a, b) => a.document.pid - b.document.pid);
}

interface RunningEndpoint {
  readonly socketPath: string;
  readonly snapshot: EstatsSnapshot;
}

export async function findEndpoints(minutes: number): Promise<RunningEndpoint[]> {
  return (await findPrograms(minutes)).flatMap(({ socketPath, document }) =>
    document.kind === 'endpoint' ? [{ socketPath, snapshot: document }] : [],
  );
}

/**
 * ECONNREFUSED from a Unix socket: no listener; in the control directory the socket is then removed. A program that is
 * only slow, or of another version, keeps its socket.
 */
export async function removeIfDead(place: string, error: unknown): Promise<boolean> {
  const cause = (error as Error).cause as NodeJS.ErrnoException | undefined;
  if (cause?.code === 'ECONNREFUSED' && path.dirname(place) === controlDirectoryPath()) {
    await unlink(place).catch(() => {});
  }
  return cause?.code === 'ECONNREFUSED' || cause?.code === 'ENOENT';
}
