import {
  type CancellationState,
  checkObject,
  Permits,
  WaitDeadline,
  type WaitOptions,
  waitFor,
} from 'rocev2/internal/core';
import type { Body } from './body-memory.js';
import { broken, CALL, CANCEL, CREDIT, END, ERROR, type Frame, ITEM, NO_DEADLINE, RESULT } from './frame.js';
import { ItemCredits, ItemQueue } from './items.js';
import { completeLimits } from './limits.js';
import { RpcError } from './rpc-error.js';
import { checkCarrier, type Limits, type RpcCarrier, type RpcLimits, RpcLink } from './rpc-link.js';
import { validated } from './schema.js';
import type { Method, Methods, Service } from './service.js';
import { encodeValue } from './value.js';

/** A client; made by {@link connectRpc}. */
export interface RpcClient<S extends Service> extends AsyncDisposable {
  /** A function for each method. */
  readonly methods: Methods<S>;
  /** Number of calls that the server has not answered. */
  readonly openCalls: number;
  /** False once the connection has ended, from either side: every further call rejects. */
  readonly isOpen: boolean;
  /** Resolves when that is so. @internal */
  readonly ended: Promise<void>;
  /** Ends the connection; calls that are open reject with ERR_ROCE_CLOSED. Safe to call twice. */
  close(): Promise<void>;
}

/**
 * Calls the methods of a service over a connection whose peer serves it, or over a byte stream (`rpcOverStream`). The
 * RPC takes over all messages of the connection. Throws ERR_ROCE_BUSY if the messages of the connection are in use
 * already.
 */
export function connectRpc<S extends Service>(
  connection: RpcCarrier,
  service: S,
  limits: RpcLimits = {},
): RpcClient<S> {
  checkCarrier(connection);
  checkObject('the service of connectRpc', service, 'a service of defineService()');
  const caller = new Caller(connection, completeLimits('connectRpc', limits));
  const methods = Object.entries(service).map(([name, method]) => [
    name,
    (input: unknown, options?: WaitOptions) => caller.call(name, method, input, options),
  ]);
  return {
    methods: Object.fromEntries(methods) as Methods<S>,
    get openCalls() {
      return caller.openCalls;
    },
    get isOpen() {
      return caller.isOpen;
    },
    ended: caller.ended,
    close: () => caller.close(),
    [Symbol.asyncDispose]: () => caller.close(),
  };
}

interface OpenCall {
  readonly outputs: ItemQueue;
  readonly inputs: ItemCredits;
  readonly settle: (output: Promise<unknown>) => void;
}

class Caller {
  readonly #link: RpcLink;
  readonly #limits: Limits;
  readonly #open = new Map<number, OpenCall>();
  #slots: Permits | undefined;
  #peer: Limits | undefined;
  readonly ended: Promise<void>;
  #markEnded: () => void = () => {};
  #onHello: () => void = () => {};
  readonly #ready: Promise<void>;
  #nextId = 1;

  constructor(carrier: RpcCarrier, limits: Limits) {
    this.#limits = limits;
    this.ended = new Promise((resolve) => {
      this.#markEnded = resolve;
    });
    this.#ready = new Promise((resolve) => {
      this.#onHello = resolve;
    });
    this.#link = new RpcLink(carrier, limits, {
      onHello: (peer) => {
        this.#peer = peer;
        this.#slots = new Permits(peer.callsMax);
        this.#onHello();
      },
      onFrame: (frame, body) => this.#onFrame(frame, body),
      onEnd: (error) => this.#onEnd(error),
    });
  }

  get openCalls(): number {
    return this.#open.size;
  }

  get isOpen(): boolean {
    return this.#link.end === undefined;
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  call(name: string, method: Method, input: unknown, options: WaitOptions | undefined): unknown {
    const streamsOut = method.stream === 'output' || method.stream === 'both';
    if (!streamsOut) return this.#unary(name, method, input, options);
    return this.#streaming(name, method, input, options);
  }

  async #unary(name: string, method: Method, input: unknown, options: WaitOptions | undefined): Promise<unknown> {
    const deadline = WaitDeadline.of(name, options, this.#link.carrier.device.clock);
    return waitFor(deadline, async (cancellation) => {
      let settle: (output: Promise<unknown>) => void = () => {};
      const output = new Promise<unknown>((resolve) => {
        settle = resolve;
      });
      output.catch(() => {});
      const { id } = await this.#begin(name, method, input, { cancellation, timeoutMs: options?.timeoutMs, settle });
      cancellation.onEnd = (error) => {
        this.#cancel(id);
        const failed = Promise.reject(error);
        failed.catch(() => {}); // The output may be in transit already; then this is not read.
        settle(failed);
      };
      if (cancellation.error !== undefined) cancellation.onEnd(cancellation.error);
      return output;
    });
  }

  async *#streaming(
    name: string,
    method: Method,
    input: unknown,
    options: WaitOptions | undefined,
  ): AsyncGenerator<unknown, void, undefined> {
    const deadline = WaitDeadline.of(name, options, this.#link.carrier.device.clock);
    const cancellation: CancellationState = { error: undefined, onEnd: undefined };
    const stop = deadline?.watch((error) => {
      cancellation.error = error;
      cancellation.onEnd?.(error);
    });
    try {
      const begun = this.#begin(name, method, input, { cancellation, timeoutMs: options?.timeoutMs, settle: () => {} });
      const { id, outputs } = await untilCancelled(begun, cancellation);
      cancellation.onEnd = (error) => {
        this.#cancel(id);
        outputs.fail(error);
      };
      if (cancellation.error !== undefined) cancellation.onEnd(cancellation.error);
      yield* outputs;
    } finally {
      stop?.();
    }
  }

  async #begin(
    name: string,
    method: Method,
    input: unknown,
    {
      cancellation,
      timeoutMs,
      settle,
    }: { cancellation: CancellationState; timeoutMs: number | undefined; settle: OpenCall['settle'] },
  ): Promise<{ readonly id: number; readonly outputs: ItemQueue }> {
    const streamsIn = method.stream === 'input' || method.stream === 'both';
    const streamsOut = method.stream === 'output' || method.stream === 'both';
    const parts = [nameBytes(name), ...(streamsIn ? [] : encodeValue(input))];
    await this.#ready;
    await this.#slots?.take(1);
    if (cancellation.error !== undefined || this.#link.end !== undefined) {
      this.#slots?.give(1);
      throw cancellation.error ?? this.#link.end!;
    }
    const id = this.#nextId;
    this.#nextId = (id % 0xffff_ffff) + 1;
    const outputs = new ItemQueue(
      this.#limits.itemsMax,
      async (count) => this.#link.send({ kind: CREDIT, call: id, a: count }, []),
      () => this.#cancel(id),
    );
    const call: OpenCall = {
      outputs,
      inputs: new ItemCredits(this.#peer!.itemsMax),
      settle: (body) => {
        const output = streamsOut
          ? body
          : body.then((value) => validated(method.output, value, `the output of ${name}`));
        output.catch(() => {});
        settle(output);
      },
    };
    this.#open.set(id, call);
    this.#checkOutputs(call, method, name);
    const deadlineMs = timeoutMs === undefined || timeoutMs >= NO_DEADLINE ? NO_DEADLINE : Math.ceil(timeoutMs);
    try {
      await this.#link.send({ kind: CALL, call: id, a: deadlineMs }, parts);
    } catch (error) {
      this.#close(id);
      throw error;
    }
    if (streamsIn) void this.#sendItems(id, call, input as AsyncIterable<unknown>);
    return { id, outputs };
  }

  #checkOutputs(call: OpenCall, method: Method, name: string): void {
    const push = call.outputs.push.bind(call.outputs);
    call.outputs.push = (item) => push(item.then((value) => validated(method.output, value, `an item of ${name}`)));
  }

  async #sendItems(id: number, { inputs }: OpenCall, items: AsyncIterable<unknown>): Promise<void> {
    try {
      for await (const item of items) {
        if (!(await inputs.take())) return;
        await this.#link.send({ kind: ITEM, call: id }, encodeValue(item));
      }
      if (this.#open.has(id)) this.#link.post({ kind: END, call: id });
    } catch (error) {
      // The program's iterable has failed, or an item cannot be sent.
      const call = this.#open.get(id);
      if (call === undefined) return;
      this.#cancel(id);
      call.settle(Promise.reject(error));
      call.outputs.fail(error as Error);
    }
  }

  #cancel(id: number): void {
    const call = this.#open.get(id);
    if (call === undefined || this.#link.end !== undefined) return;
    call.inputs.stop();
    this.#link.post({ kind: CANCEL, call: id });
  }

  #close(id: number): void {
    this.#open.get(id)?.inputs.stop();
    if (this.#open.delete(id)) this.#slots!.give(1);
  }

  #onFrame({ kind, call: id, a }: Frame, body: () => Promise<Body>): void {
    const call = this.#open.get(id);
    if (kind === CREDIT && call === undefined) return; // The credit was sent before the method ended.
    if (call === undefined) throw broken('it answered a call that is not open');
    if (kind === ITEM) call.outputs.push(body().then((item) => item.decode()));
    else if (kind === CREDIT) call.inputs.give(a);
    else if (kind === RESULT || kind === ERROR) this.#onAnswer(id, call, kind, body());
    else throw broken(`a server cannot send a frame of kind ${kind}`);
  }

  #onAnswer(id: number, call: OpenCall, kind: number, body: Promise<Body>): void {
    this.#close(id);
    body.catch(() => {});
    if (kind === RESULT) {
      call.settle(body.then((output) => (output.bytes.length === 0 ? undefined : output.decode())));
      call.outputs.end();
      return;
    }
    const failed = body.then((error) => {
      throw errorIn(error);
    });
    failed.catch((error: Error) => call.outputs.fail(error));
    call.settle(failed);
  }

  #onEnd(error: Error): void {
    this.#onHello();
    this.#markEnded();
    this.#slots?.freeAll();
    for (const [id, call] of [...this.#open]) {
      this.#close(id);
      call.settle(Promise.reject(error));
      call.outputs.fail(error);
    }
  }
}

function errorIn(body: Body): RpcError {
  const { code, message } = (body.decode() ?? {}) as { code?: unknown; message?: unknown };
  return new RpcError(String(code).slice(0, 64), String(message).slice(0, 1024));
}

function nameBytes(name: string): Buffer {
  const bytes = Buffer.from(name);
  return Buffer.concat([Buffer.from([bytes.length]), bytes]);
}

/** The caller of a stream waits for its begin no longer than its deadline. */
function untilCancelled<T>(begun: Promise<T>, cancellation: CancellationState): Promise<T> {
  return new Promise((resolve, reject) => {
    cancellation.onEnd = reject;
    begun.then(resolve, reject);
  });
}
