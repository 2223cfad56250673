/**
 * A BullMQ queue on a Redis server. Its name contains the version and digests of the program's code and extensions, so
 * that runs and cached results only come from identical code.
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

export const DEFAULT_REDIS = 'redis://127.0.0.1:6379';
const DIGEST_LENGTH = 12;
const CONNECT_TIMEOUT_MS = 5_000;

export interface QueuedRun {
  readonly document: unknown;
}

export interface QueueLibrary {
  readonly bullmq: Pick<typeof import('bullmq'), 'Queue' | 'QueueEvents' | 'Worker' | 'WaitingError'>;
  readonly Redis: typeof import('ioredis').Redis;
}

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

export async function connectRedis(url: string): Promise<RedisConnection> {
  const { Redis } = await queueLibrary();
  const shown = withoutPassword(url);
  let isOpen = false;
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    maxRetriesPerRequest: null,
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

export function queueName(): string {
  const extensions = loadedExtensions();
  const digest = extensions.length === 0 ? '' : `-${digestOf(extensions.map((href) => readFileSync(new URL(href))))}`;
  return `rocev2-sweep-${packageVersion()}-${codeDigest()}${digest}`;
}

export function runId(document: unknown): string {
  return `run-${digestOf([Buffer.from(JSON.stringify(document))], 32)}`;
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
