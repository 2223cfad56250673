/** A misbehaving caller ends its own connection at most; no error of it reaches the program. */

import { printable } from 'rocev2/internal/cm';
import { checkObject, checkWhole, NS_PER_MS, nearestName, Permits, RoceError } from 'rocev2/internal/core';
import { type AnswerMemory, type Body, type ServerMemory, serverMemory } from './body-memory.js';
import { CallEnd } from './call-end.js';
import { broken, CALL, CANCEL, CREDIT, END, ERROR, type Frame, ITEM, NO_DEADLINE, RESULT } from './frame.js';
import { ItemCredits, ItemQueue } from './items.js';
import { completeLimits } from './limits.js';
import { RpcError } from './rpc-error.js';
import { checkCarrier, type Limits, type RpcCarrier, type RpcLimits, RpcLink } from './rpc-link.js';
import { validated } from './schema.js';
import type { Handlers, Method, Service } from './service.js';
import { encodeValue } from './value.js';

/** Options of {@link serveRpc}. */
export interface ServeOptions extends RpcLimits {
  /**
   * Called with an error of a handler that is not an RpcError; the caller gets `INTERNAL` without its text. Called with
   * an empty method name if the iterable of connections fails. Default: errors are ignored.
   */
  readonly onError?: ((error: unknown, method: string) => void) | undefined;
  /**
   * Most bytes of received values in memory, for all connections of this server; a quarter of it for those of one
   * address. Further values wait at their senders. As much again for outputs that callers have not taken: then further
   * calls wait. Default: 256 MiB for all servers of the process together.
   */
  readonly memoryBytesMax?: number | undefined;
}

/** Counters of a server. */
export interface RpcCounters {
  /** Calls received. */
  calls: number;
  /** Calls answered with an output, or with a complete stream. */
  done: number;
  /** Calls answered with an error of the method, the schemas or the library. */
  failed: number;
  /** Calls that ended because the caller gave up, its deadline passed, or its connection ended. */
  cancelled: number;
  /** Connections that ended because the peer broke the protocol. */
  refused_peers: number;
}

/** A server; made by {@link serveRpc}. */
export interface RpcServer extends AsyncDisposable {
  /** A copy of the counters. */
  counters(): RpcCounters;
  /** Number of open connections. */
  readonly connections: number;
  /** Bytes in memory now, of all servers that share it: received values, and outputs that callers have not taken. */
  readonly heldBytes: { readonly received: number; readonly outputs: number };
  /** Ends all connections. Safe to call twice. */
  close(): Promise<void>;
}

/**
 * Serves the methods of a service on a connection, or on each connection of an iterable, such as a listener;
 * `rpcOverStream` makes a byte stream do for a connection. The RPC takes over all messages of the connections.
 */
export function serveRpc<S extends Service>(
  source: RpcCarrier | AsyncIterable<RpcCarrier>,
  service: S,
  handlers: Handlers<S>,
  options: ServeOptions = {},
): RpcServer {
  checkObject('the service of serveRpc', service, 'a service of defineService()');
  checkObject('the handlers of serveRpc', handlers, 'an object with a function for each method');
  checkObject('the options of serveRpc', options, 'an object');
  const { onError, memoryBytesMax, ...given } = options;
  const limits = completeLimits('serveRpc', given);
  if (memoryBytesMax !== undefined) checkWhole('memoryBytesMax', memoryBytesMax, 1, Number.MAX_SAFE_INTEGER);
  const server = new Server(service, handlers as AnyHandlers, limits, {
    onError,
    memory: serverMemory(memoryBytesMax),
  });
  if (!isIterable(source)) checkCarrier(source as RpcCarrier);
  if ('sendClaimed' in source) server.add(source);
  else server.addAll(source).catch((error: unknown) => onError?.(error, ''));
  return {
    counters: () => ({ ...server.counters }),
    get connections() {
      return server.links.size;
    },
    get heldBytes() {
      const { bodies, answers } = server.memory;
      return { received: bodies.heldBytes, outputs: answers.heldBytes };
    },
    close: () => server.close(),
    [Symbol.asyncDispose]: () => server.close(),
  };
}

function isIterable(source: unknown): boolean {
  return typeof (source as AsyncIterable<unknown> | null | undefined)?.[Symbol.asyncIterator] === 'function';
}

type AnyHandlers = Readonly<Record<string, (input: unknown, context: { readonly signal: AbortSignal }) => unknown>>;

const CODE_MAX = 64;
const MESSAGE_MAX = 1024;
const nothing = () => {};
/** One for all calls: an error costs more than the rest of ending a call. */
const METHOD_ENDED = new RpcError('CANCELLED', 'the method has ended');

class Server {
  readonly counters: RpcCounters = { calls: 0, done: 0, failed: 0, cancelled: 0, refused_peers: 0 };
  readonly links = new Set<RpcLink>();
  readonly service: Service;
  readonly handlers: AnyHandlers;
  readonly limits: Limits;
  readonly onError: ServeOptions['onError'];
  readonly memory: ServerMemory;
  #isClosed = false;

  constructor(
    service: Service,
    handlers: AnyHandlers,
    limits: Limits,
    { onError, memory }: { readonly onError: ServeOptions['onError']; readonly memory: ServerMemory },
  ) {
    this.service = service;
    this.handlers = handlers;
    this.limits = limits;
    this.onError = onError;
    this.memory = memory;
  }

  add(carrier: RpcCarrier): void {
    new ServedConnection(this, carrier);
  }

  async addAll(carriers: AsyncIterable<RpcCarrier>): Promise<void> {
    for await (const carrier of carriers) {
      if (this.#isClosed) await carrier.close();
      else this.add(carrier);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.links].map((link) => link.close()));
  }
}

/** It counts towards the caller's limit until its answer has been sent. */
interface ServedCall {
  readonly end: CallEnd;
  readonly inputs: ItemQueue;
  readonly outputs: ItemCredits;
  readonly stopTimer: () => void;
}

/** A call whose method is known. */
interface Run {
  readonly name: string;
  readonly method: Method;
  readonly body: Body;
  readonly answer: AnswerMemory;
}

class ServedConnection {
  readonly #server: Server;
  readonly #link: RpcLink;
  readonly #calls = new Map<number, ServedCall>();
  /** A peer that receives no answers gets no more calls served. */
  readonly #served: Permits;
  #strays = 0;
  #peer: Limits | undefined;

  constructor(server: Server, carrier: RpcCarrier) {
    this.#server = server;
    this.#served = new Permits(2 * server.limits.callsMax);
    const events = {
      onHello: (peer: Limits) => {
        this.#peer = peer;
      },
      onFrame: (frame: Frame, body: () => Promise<Body>) => this.#onFrame(frame, body),
      onEnd: (error: Error) => this.#onEnd(error),
    };
    this.#link = new RpcLink(carrier, server.limits, events, server.memory);
    server.links.add(this.#link);
  }

  #onFrame(frame: Frame, body: () => Promise<Body>): void {
    const { kind, call: id, a } = frame;
    const call = this.#calls.get(id);
    if (kind === CALL) {
      if (call !== undefined) throw broken('it used the number of an open call again');
      if (this.#calls.size >= this.#server.limits.callsMax) throw broken('it made more concurrent calls than allowed');
      void this.#serve(id, this.#newCall(id, a), body());
    } else if (kind === ITEM) {
      // An item of an already answered call must still be read from the peer's memory.
      const item = body();
      if (call === undefined) this.#takeStray(item);
      else this.#takeItem(call, item);
    } else if (kind === END) call?.inputs.end();
    else if (kind === CREDIT) call?.outputs.give(a);
    else if (kind === CANCEL) call?.end.end(new RpcError('CANCELLED', 'the caller gave up'));
    else throw broken(`a caller cannot send a frame of kind ${kind}`);
  }

  #takeItem({ inputs }: ServedCall, item: Promise<Body>): void {
    const release = () => void item.then((body) => body.release(), nothing);
    inputs.push(
      item.then((body) => body.decode()),
      release,
    );
  }

  /** An honest caller can have sent this many items before it received the answers. */
  #takeStray(item: Promise<Body>): void {
    const { callsMax, itemsMax } = this.#server.limits;
    const done = (body?: Body) => {
      this.#strays--;
      body?.release();
    };
    this.#strays++;
    item.then(done, () => done());
    if (this.#strays > callsMax * itemsMax) throw broken('it sent items of calls that are not open');
  }

  #newCall(id: number, deadlineMs: number): ServedCall {
    const { counters, limits } = this.#server;
    const { clock } = this.#link.carrier.device;
    counters.calls++;
    const end = new CallEnd((reason) => {
      call.inputs.fail(reason);
      call.outputs.stop();
    });
    const late = () => end.end(new RpcError('TIMEOUT', `the caller's deadline of ${deadlineMs} ms has passed`));
    const call: ServedCall = {
      end,
      inputs: new ItemQueue(
        limits.itemsMax,
        async (count) => this.#link.send({ kind: CREDIT, call: id, a: count }, []),
        () => {},
      ),
      outputs: new ItemCredits(this.#peer!.itemsMax),
      stopTimer: deadlineMs === NO_DEADLINE ? () => {} : clock.wakeAt(clock.nowNs() + deadlineMs * NS_PER_MS, late),
    };
    this.#calls.set(id, call);
    return call;
  }

  async #serve(id: number, call: ServedCall, body: Promise<Body>): Promise<void> {
    const { counters } = this.#server;
    let name = '?';
    let running: Promise<unknown> = body;
    let isSent = false;
    const answer = this.#link.newAnswer();
    body.catch(() => {});
    await this.#served.take(1);
    try {
      const input = await body;
      name = nameIn(input.bytes);
      const method = Object.hasOwn(this.#server.service, name) ? this.#server.service[name] : undefined;
      if (method === undefined) throw unknownMethod(name, this.#server.service);
      const run = this.#run(id, call, { name, method, body: input, answer });
      running = run;
      const parts = await call.end.unlessEnded(run);
      this.#calls.delete(id); // The caller may start another call as soon as it has the answer.
      await this.#link.answer({ kind: RESULT, call: id }, parts, answer);
      isSent = true; // Its memory is in use until the caller has it.
      counters.done++;
    } catch (error) {
      if (call.end.reason !== undefined) counters.cancelled++;
      else counters.failed++;
      this.#calls.delete(id);
      await this.#answerError(id, this.#told(error, name));
    } finally {
      call.stopTimer();
      call.outputs.stop();
      call.inputs.fail(METHOD_ENDED);
      call.inputs.dispose();
      void Promise.allSettled([running, body]).then(([, input]) => {
        if (input.status === 'fulfilled') input.value.release(); // The handler may use it until it ends.
        if (!isSent) answer.release();
      });
      this.#served.give(1);
    }
  }

  async #run(id: number, call: ServedCall, { name, method, body, answer }: Run): Promise<Uint8Array[]> {
    const valueAt = 1 + Buffer.byteLength(name);
    const streamsIn = method.stream === 'input' || method.stream === 'both';
    const input = streamsIn
      ? validatedItems(call.inputs, method, name)
      : await validated(method.input, body.decode(valueAt), `the input of ${name}`);
    const granted = answer.resize(streamsIn ? undefined : method.outputBytesMax?.(input as never));
    if (granted !== undefined) await granted;
    if (call.end.reason !== undefined) throw call.end.reason;
    const output = this.#server.handlers[name](input, contextOf(call.end));
    if (method.stream !== 'output' && method.stream !== 'both') return encodeValue(await output);
    for await (const item of output as AsyncIterable<unknown>) {
      if (!(await call.outputs.take())) break;
      await this.#link.answer({ kind: ITEM, call: id }, encodeValue(item), this.#link.newAnswer());
    }
    return [];
  }

  #told(error: unknown, name: string): RpcError {
    if (error instanceof RpcError) return error;
    if (error instanceof RoceError && error.code === 'ERR_ROCE_LIMIT') return new RpcError('TOO_LARGE', error.message);
    if (error instanceof RoceError && error.code === 'ERR_ROCE_MALFORMED')
      return new RpcError('INVALID', error.message);
    try {
      this.#server.onError?.(error, name);
    } catch {
      // An error of the hook must not end the connection.
    }
    return new RpcError('INTERNAL', 'the method failed');
  }

  async #answerError(id: number, { remoteCode, message }: RpcError): Promise<void> {
    if (this.#link.end !== undefined) return;
    const told = { code: remoteCode.slice(0, CODE_MAX), message: message.slice(0, MESSAGE_MAX) };
    await this.#link.send({ kind: ERROR, call: id }, encodeValue(told)).catch((error: Error) => this.#link.fail(error));
  }

  #onEnd(error: Error): void {
    this.#served.freeAll();
    this.#server.links.delete(this.#link);
    if ((error as RoceError).code === 'ERR_ROCE_MISMATCH') this.#server.counters.refused_peers++;
    for (const { end } of [...this.#calls.values()]) end.end(error);
  }
}

function nameIn(body: Buffer): string {
  const length = body.length > 0 ? body[0] : 0;
  if (length === 0 || body.length < 1 + length) throw new RpcError('INVALID', 'the call has no method name');
  const name = body.toString('utf8', 1, 1 + length);
  if (Buffer.byteLength(name) !== length) throw new RpcError('INVALID', 'the method name is not valid UTF-8');
  return name;
}

function unknownMethod(name: string, service: Service): RpcError {
  const meant = nearestName(name, Object.keys(service));
  const hint = meant === undefined ? '' : `; did you mean '${meant}'?`;
  return new RpcError('UNKNOWN_METHOD', `the server has no method '${printable(name)}'${hint}`);
}

async function* validatedItems(
  items: ItemQueue,
  method: Method,
  name: string,
): AsyncGenerator<unknown, void, undefined> {
  for await (const item of items) yield await validated(method.input, item, `an item of ${name}`);
}

function contextOf(end: CallEnd): { readonly signal: AbortSignal } {
  return {
    get signal() {
      return end.signal;
    },
  };
}
