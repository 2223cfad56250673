/**
 * The JSON gateway of etcd (https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/): its gRPC methods as POST requests, with bytes in base64 and 64-bit numbers as
 * decimal strings. Requests go to one member, and to the next one when that fails.
 */

import { type Clock, pause } from '../../core/clock.js';
import { RoceError } from '../../core/errors.js';
import { NS_PER_MS } from '../../core/units.js';

/** Whether this says where a member is: `http://HOST:PORT`. */
export function isEtcdEndpoint(text: string): boolean {
  return /^https?:\/\/[^\s/]+\/?$/.test(text);
}

/** Errors of a connection that was never there: the member has not seen the request. */
const UNSENT = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN']);
const ERROR_TEXT_MAX = 200;
const WATCH_RETRY_MS = 500;

/** The members of one etcd. */
export class EtcdGateway {
  readonly #endpoints: readonly string[];
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #ends = new AbortController();
  /** Which one is asked. */
  #at = 0;

  /** `endpoints`: such as `http://10.0.0.1:2379`, at least one. `timeoutMs`: how long a member may take. */
  constructor(endpoints: readonly string[], clock: Clock, timeoutMs: number) {
    this.#endpoints = endpoints;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
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
        if (asked >= this.#endpoints.length || this.#ends.signal.aborted || !isRepeated(error))
          throw unreachable(this.#endpoints[at], error);
      }
    }
  }

  /** The next request goes to another member. */
  #passOver(at: number): void {
    if (this.#at === at) this.#at = (at + 1) % this.#endpoints.length;
  }

  async #post<T>(endpoint: string, path: string, body: object): Promise<T> {
    const late = new AbortController();
    const cancel = this.#clock.wakeAt(this.#clock.nowNs() + this.#timeoutMs * NS_PER_MS, () =>
      late.abort(new Error(`no answer in ${this.#timeoutMs} ms`)),
    );
    try {
      const response = await this.#fetch(endpoint, path, body, AbortSignal.any([late.signal, this.#ends.signal]));
      return (await response.json()) as T;
    } finally {
      cancel();
    }
  }

  async #fetch(endpoint: string, path: string, body: object, signal: AbortSignal): Promise<Response> {
    const response = await fetch(new URL(path, endpoint), { method: 'POST', body: JSON.stringify(body), signal });
    if (response.ok) return response;
    throw new Error(`status ${response.status}: ${(await response.text()).slice(0, ERROR_TEXT_MAX)}`);
  }

  /** Calls back with every event of a watch, from now on, and begins it anew when it ends. The result ends it. */
  watch<T>(body: object, onEvent: (event: T) => void, onGap: () => void): () => void {
    const ends = new AbortController();
    const signal = AbortSignal.any([ends.signal, this.#ends.signal]);
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
    };
    void follow();
    return () => ends.abort();
  }

  /** Ends all requests and watches. */
  close(): void {
    this.#ends.abort(new Error('closed'));
  }
}

async function* linesOf(response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of response.body! as unknown as AsyncIterable<Uint8Array>) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop()!;
    for (const line of lines) if (line.trim() !== '') yield line;
  }
}

function isUnsent(error: unknown): boolean {
  const { cause } = error as { readonly cause?: { readonly code?: string } };
  return UNSENT.has(cause?.code ?? '');
}

function unreachable(endpoint: string, cause: unknown): RoceError {
  const { message, cause: inner } = cause as Error;
  const why = inner instanceof Error ? inner.message || (inner as NodeJS.ErrnoException).code : message;
  return new RoceError(
    'ERR_ROCE_CONNECT',
    `etcd does not answer at ${endpoint}: ${why}`,
    'is it up, with a majority of its members?',
    {
      cause,
    },
  );
}
