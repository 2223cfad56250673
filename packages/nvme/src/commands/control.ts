/**
 * The control socket of a target. A client writes one line, a JSON array of words; the answer is one line,
 * `{"done": TEXT}` or `{"error": TEXT}`.
 */

import { once } from 'node:events';
import { chmod } from 'node:fs/promises';
import { createConnection, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { RoceError } from 'rocev2/internal/core';
import { listenOn } from 'rocev2/internal/nbd';
import { z } from 'zod';

const LINE_BYTES_MAX = 4096;
const CONNECTIONS_MAX = 16;
const SILENCE_MS = 5_000;
const OWNER_READS_AND_WRITES = 0o600;

const REQUEST = z.array(z.string()).min(1);
const ANSWER = z.union([z.object({ done: z.string() }), z.object({ error: z.string() })]);

export async function openControl(
  path: string,
  change: (words: string[]) => Promise<string>,
): Promise<AsyncDisposable> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
    void serve(socket, change);
  });
  server.maxConnections = CONNECTIONS_MAX;
  try {
    await listenOn(server, { path });
    await chmod(path, OWNER_READS_AND_WRITES);
  } catch (cause) {
    throw new RoceError('ERR_ROCE_IO', `cannot listen on ${path}: ${(cause as Error).message}`, undefined, { cause });
  }
  return {
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

async function serve(socket: Socket, change: (words: string[]) => Promise<string>): Promise<void> {
  socket.setTimeout(SILENCE_MS, () => socket.destroy());
  let text = '';
  socket.setEncoding('utf8');
  for await (const part of socket.iterator({ destroyOnReturn: false })) {
    text += part;
    if (text.includes('\n') || text.length > LINE_BYTES_MAX) break;
  }
  if (!text.includes('\n')) {
    socket.destroy();
    return;
  }
  socket.setTimeout(0);
  socket.end(`${JSON.stringify(await answerTo(text, change))}\n`);
}

async function answerTo(text: string, change: (words: string[]) => Promise<string>): Promise<z.infer<typeof ANSWER>> {
  try {
    return { done: await change(REQUEST.parse(JSON.parse(text))) };
  } catch (error) {
    return { error: error instanceof z.ZodError ? 'a change is an array of words' : (error as Error).message };
  }
}

export async function askForChange(path: string, words: readonly string[]): Promise<string> {
  const socket = createConnection(path);
  try {
    await once(socket, 'connect');
  } catch (cause) {
    throw new RoceError('ERR_ROCE_CONNECT', `no target listens at ${path}`, 'start it with --control PATH', { cause });
  }
  socket.write(`${JSON.stringify(words)}\n`);
  for await (const line of createInterface({ input: socket })) {
    const answer = ANSWER.parse(JSON.parse(line));
    if ('done' in answer) return answer.done;
    throw new RoceError('ERR_ROCE_REMOTE', answer.error);
  }
  throw new RoceError('ERR_ROCE_CONNECT', 'the target has closed the connection without an answer');
}
