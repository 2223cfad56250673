/**
 * Where sweeps and workers of several machines meet: a queue of BullMQ on a Redis server. Its name has the version, a digest of the program's code and one of its
 * extensions, so that a run is done only by code that gives the result which the code that asks would give, and a result that is kept is taken only then.
 */

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageVersion } from '@rocev2/command';
import type { Redis as RedisConnection } from 'ioredis';
import { RoceError } from 'rocev2/internal/core';
import { loadedExtensions } from 'rocev2/internal/driver';

/** Where Redis listens unless a command says otherwise. */
export const DEFAULT_REDIS = 'redis://127.0.0.1:6379';
/** Hexadecimal digits of a digest: 48 bits. */
const DIGEST_LENGTH = 12;
/** A server that does not answer in this time is not there. */
const CONNECT_TIMEOUT_MS = 5_000;

/** What a run is asked for. */
export interface QueuedRun {
  /** A scenario file with its overrides. */
  readonly document: unknown;
}

/** What is used of the two packages. */
export interface QueueLibrary {
  /** Queues, workers, and the error that gives a run back. */
  readonly bullmq: Pick<typeof import('bullmq'), 'Queue' | 'QueueEvents' | 'Worker' | 'WaitingError'>;
  /** Connections. */
  readonly Redis: typeof import('ioredis').Redis;
}

/** BullMQ and ioredis, which are installed by those who want them. Throws ERR_ROCE_UNSUPPORTED where they are not. */
export async function queueLibrary(): Promise<QueueLibrary> {
  try {
    const [bullmq, { Redis }] = await Promise.all([import('bullmq'), import('ioredis')]);
    return { bullmq, Redis };
  } catch (cause) {
    throw new RoceError(
      'ERR_ROCE_UNSUPPORTED',
      'runs on other machines need the packages bullmq and ioredis',
      'npm install bullmq ioredis, where rocev2 is installed',
      { cause },
    );
  }
}

/**
 * A connection to a server that is there. Throws ERR_ROCE_MALFORMED for what is no URL of Redis, ERR_ROCE_CONNECT if nothing answers there, or does not let us in. The server
 * that goes later is waited for.
 */
export async function connectRedis(url: string): Promise<RedisConnection> {
  const { Redis } = await queueLibrary();
  const shown = withoutPassword(url);
  let isOpen = false;
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    maxRetriesPerRequest: null, // BullMQ's workers ask for it: they wait for the server
    retryStrategy: (attempt) => (isOpen ? Math.min(attempt * 100, 2_000) : null),
  });
  let problem: Error | undefined;
  redis.on('error', (error: Error) => {
    problem = error;
  });
  try {
    await redis.connect();
    await redis.ping();
    isOpen = true;
    return redis;
  } catch (cause) {
    redis.disconnect();
    throw new RoceError(
      'ERR_ROCE_CONNECT',
      `no Redis server for us at ${shown}: ${(problem ?? (cause as Error)).message}`,
      'start one, or name another with --redis redis://[:PASSWORD@]HOST:PORT',
      { cause },
    );
  }
}

/** The URL as it may be shown. Throws ERR_ROCE_MALFORMED for anything but `redis:` and `rediss:` with a host. */
export function withoutPassword(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['redis:', 'rediss:'].includes(url.protocol) || url.hostname === '') {
    throw new RoceError(
      'ERR_ROCE_MALFORMED',
      'that is no URL of a Redis server',
      'redis://[:PASSWORD@]HOST[:PORT], or rediss:// for TLS',
    );
  }
  if (url.password !== '') url.password = '***';
  return url.href;
}

/** The queue of this version, code and extensions. */
export function queueName(): string {
  const extensions = loadedExtensions();
  const digest = extensions.length === 0 ? '' : `-${digestOf(extensions.map((href) => readFileSync(new URL(href))))}`;
  return `rocev2-sweep-${packageVersion()}-${codeDigest()}${digest}`;
}

/** The name of a run in its queue: equal for equal scenario files. */
export function runId(document: unknown): string {
  return `run-${digestOf([Buffer.from(JSON.stringify(document))], 32)}`; // BullMQ takes no name that is a number
}

/** A digest of all code of this program; a changed simulator must not give old results. */
function codeDigest(): string {
  const entries = [fileURLToPath(import.meta.url), createRequire(import.meta.url).resolve('rocev2')];
  return digestOf(entries.flatMap((entry) => codeBeside(dirname(entry))));
}

/** Names and contents of the modules under a folder, in one order. */
function codeBeside(root: string): Uint8Array[] {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.[jt]s$/.test(path) && !path.endsWith('.d.ts'))
    .sort();
  return files.flatMap((path) => [Buffer.from(path), readFileSync(join(root, path))]);
}

function digestOf(parts: readonly Uint8Array[], length = DIGEST_LENGTH): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  return hash.digest('hex').slice(0, length);
}
