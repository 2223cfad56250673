/**
 * The JSON gateway of etcd (https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/): gRPC methods as POST requests,
 * bytes in base64, 64-bit numbers as decimal strings. Requests go to one member, and to the next when that fails.
 */

import { type IncomingMessage, Agent as PlainAgent, request as requestPlain } from 'node:http';
import { request as requestSecure, Agent as SecureAgent } from 'node:https';
import { type Clock, NS_PER_MS, pause, RoceError } from 'rocev2/internal/core';
import { type EtcdAccess, hintFor, tlsOf } from './etcd-access.js';

export function isEtcdEndpoint(text: string): boolean {
  return /^https?:\/\/[^\s/]+\/?$/.test(text);
}

/** Errors of a connection that was never there: the member has not seen the request. */
const UNSENT = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN']);
const ERROR_TEXT_MAX = 200;
const STATUS_OK = 200;
const WATCH_RETRY_MS = 500;
const CLOSED = new Error('closed');

export class EtcdGateway {
  readonly #endpoints: readonly string[];
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #access: EtcdAccess;
  readonly #plain = new PlainAgent({ keepAlive: true });
  readonly #secure: SecureAgent;
  #token: Promise<string> | undefined;
  /** (`AbortSignal.any` of a long-lived signal keeps every request indefinitely in Node 20.) */
  readonly #underWay = new Set<AbortController>();
  #isClosed = false;
  #at = 0;

  constructor(endpoints: readonly string[], clock: Clock, timeoutMs: number, access: EtcdAccess = {}) {
    this.#endpoints = endpoints;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#access = access;
    // Without rejectUnauthorized, NODE_TLS_REJECT_UNAUTHORIZED decides.
    this.#secure = new SecureAgent({ keepAlive: true, rejectUnauthorized: true, ...tlsOf(access) });
  }

  /** Sends an idempotent request to one member after another. */
  ask<T>(path: string, body: object): Promise<T> {
    return this.#request(path, body, () => true);
  }

  /** Rejects if it may have happened; only a member that was never reached is passed over. */
  askOnce<T>(path: string, body: object): Promise<T> {
    return this.#request(path, body, isUnsent);
  }

  async #request<T>(path: string, body: object, isRepeated: (error: unknown) => boolean): Promise<T> {
    for (let asked = 1; ; asked++) {
      const at = this.#at;
      try {
        return await this.#post(this.#endpoints[at], path, body);
      } catch (error) {
        this.#passOver(at);
        if (asked >= this.#endpoints.length || this.#isClosed || !isRepeated(error))
          throw unreachable(this.#endpoints[at], error);
      }
    }
  }

  #passOver(at: number): void {
    if (this.#at === at) this.#at = (at + 1) % this.#endpoints.length;
  }

  async #post<T>(endpoint: string, path: string, body: object): Promise<T> {
    const ends = this.#begin();
    const cancel = this.#clock.wakeAt(this.#clock.nowNs() + this.#timeoutMs * NS_PER_MS, () =>
      ends.abort(new Error(`no answer in ${this.#timeoutMs} ms`)),
    );
    try {
      const response = await this.#fetch(endpoint, path, body, ends.signal);
      return JSON.parse(await textOf(response)) as T;
    } finally {
      cancel();
      this.#underWay.delete(ends);
    }
  }

  #begin(): AbortController {
    const ends = new AbortController();
    if (this.#isClosed) ends.abort(CLOSED);
    this.#underWay.add(ends);
    return ends;
  }

  /**
   * Sends a request, with the user's token if there is a user; repeats it with a new token if etcd rejects the old one.
   */
  async #fetch(endpoint: string, path: string, body: object, signal: AbortSignal): Promise<IncomingMessage> {
    const { user, password = '' } = this.#access;
    if (user === undefined) return this.#send(endpoint, path, body, { signal });
    for (let attempt = 1; ; attempt++) {
      this.#token ??= this.#send(endpoint, '/v3/auth/authenticate', { name: user, password }, { signal }).then(
        async (response) => (JSON.parse(await textOf(response)) as { token: string }).token,
      );
      const token = this.#token;
      try {
        return await this.#send(endpoint, path, body, { signal, token: await token });
      } catch (error) {
        if (this.#token === token) this.#token = undefined;
        if (attempt > 1 || !/invalid auth token/.test((error as Error).message)) throw error;
      }
    }
  }

  async #send(
    endpoint: string,
    path: string,
    body: object,
    { signal, token }: { readonly signal: AbortSignal; readonly token?: string },
  ): Promise<IncomingMessage> {
    const url = new URL(path, endpoint);
    const isSecure = url.protocol === 'https:';
    const headers = { 'content-type': 'application/json', ...(token !== undefined && { authorization: token }) };
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const agent = isSecure ? this.#secure : this.#plain;
      const options = { method: 'POST', headers, agent, signal };
      const request = (isSecure ? requestSecure : requestPlain)(url, options, resolve);
      request.on('error', (error) => reject(signal.aborted ? signal.reason : error));
      request.end(JSON.stringify(body));
    });
    if (response.statusCode === STATUS_OK) return response;
    throw new Error(`status ${response.statusCode}: ${(await textOf(response)).slice(0, ERROR_TEXT_MAX)}`);
  }

  watch<T>(body: object, onEvent: (event: T) => void, onGap: () => void): () => void {
    const ends = this.#begin();
    const { signal } = ends;
    const follow = async () => {
      for (let isFirst = true; !signal.aborted; isFirst = false) {
        const at = this.#at;
        if (!isFirst) onGap();
        try {
          const response = await this.#fetch(this.#endpoints[at], '/v3/watch', body, signal);
          for await (const line of linesOf(response)) onEvent(JSON.parse(line) as T);
        } catch {
          if (!signal.aborted) this.#passOver(at);
        }
        if (!signal.aborted) await pause(this.#clock, WATCH_RETRY_MS * NS_PER_MS);
      }
      this.#underWay.delete(ends);
    };
    void follow();
    return () => ends.abort();
  }

  close(): void {
    this.#isClosed = true;
    for (const ends of this.#underWay) ends.abort(CLOSED);
    this.#plain.destroy();
    this.#secure.destroy();
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  response.setEncoding('utf8');
  for await (const piece of response) text += piece;
  return text;
}

async function* linesOf(response: IncomingMessage): AsyncGenerator<string> {
  let rest = '';
  response.setEncoding('utf8');
  for await (const piece of response) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop()!;
    for (const line of lines) if (line.trim() !== '') yield line;
  }
}

function isUnsent(error: unknown): boolean {
  return UNSENT.has((error as NodeJS.ErrnoException).code ?? '');
}

function unreachable(endpoint: string, cause: unknown): RoceError {
  const { message, code } = cause as NodeJS.ErrnoException;
  const text = `etcd does not answer at ${endpoint}: ${message || code}`;
  return new RoceError('ERR_ROCE_CONNECT', text, hintFor(cause), { cause });
}
