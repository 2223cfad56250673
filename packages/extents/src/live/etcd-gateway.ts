/**
 * The JSON gateway of etcd (https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/): its gRPC methods as POST requests, with bytes in base64 and 64-bit numbers as
 * decimal strings. Requests go to one member, and to the next one when that fails.
 */

import { type IncomingMessage, Agent as PlainAgent, request as requestPlain } from 'node:http';
import { request as requestSecure, Agent as SecureAgent } from 'node:https';
import { type Clock, NS_PER_MS, pause, RoceError } from 'rocev2/internal/core';
import { type EtcdAccess, hintFor, tlsOf } from './etcd-access.js';

/** Whether this says where a member is: `http://HOST:PORT`. */
export function isEtcdEndpoint(text: string): boolean {
  return /^https?:\/\/[^\s/]+\/?$/.test(text);
}

/** Errors of a connection that was never there: the member has not seen the request. */
const UNSENT = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN']);
const ERROR_TEXT_MAX = 200;
const STATUS_OK = 200;
const WATCH_RETRY_MS = 500;
const CLOSED = new Error('closed');

/** The members of one etcd. */
export class EtcdGateway {
  readonly #endpoints: readonly string[];
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #access: EtcdAccess;
  readonly #plain = new PlainAgent({ keepAlive: true });
  readonly #secure: SecureAgent;
  /** What a user is known by, once it has said its password. */
  #token: Promise<string> | undefined;
  /** What is under way, ended by {@link close}. (`AbortSignal.any` of a long-lived signal keeps every request for ever in Node 20.) */
  readonly #underWay = new Set<AbortController>();
  #isClosed = false;
  /** Which one is asked. */
  #at = 0;

  /** `endpoints`: such as `http://10.0.0.1:2379`, at least one. `timeoutMs`: how long a member may take. */
  constructor(endpoints: readonly string[], clock: Clock, timeoutMs: number, access: EtcdAccess = {}) {
    this.#endpoints = endpoints;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#access = access;
    this.#secure = new SecureAgent({ keepAlive: true, ...tlsOf(access) });
  }

  /** Asks what changes nothing, or may happen twice: at one member after another. */
  ask<T>(path: string, body: object): Promise<T> {
    return this.#request(path, body, () => true);
  }

  /** Asks for what must happen once at most. Rejects if it may have happened; only a member that was never reached is passed over. */
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

  /** The next request goes to another member. */
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

  /** Something that {@link close} ends, until it is taken out. */
  #begin(): AbortController {
    const ends = new AbortController();
    if (this.#isClosed) ends.abort(CLOSED);
    this.#underWay.add(ends);
    return ends;
  }

  /** Asks in the name of the user, if there is one; once more where etcd has forgotten that it knew it. */
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

  /** Resolves with the answer to one request, if it is a good one. */
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

  /** Calls back with every event of a watch, from now on, and begins it anew when it ends. The result ends it. */
  watch<T>(body: object, onEvent: (event: T) => void, onGap: () => void): () => void {
    const ends = this.#begin();
    const { signal } = ends;
    const follow = async () => {
      for (let isFirst = true; !signal.aborted; isFirst = false) {
        const at = this.#at;
        if (!isFirst) onGap(); // Nobody knows what was missed.
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

  /** Ends all requests and watches. */
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
