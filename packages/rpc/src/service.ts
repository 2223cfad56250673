import { checkKind, checkObject, RoceError, type WaitOptions } from 'rocev2/internal/core';
import type { InputOf, OutputOf, StandardSchema } from './schema.js';

/** One method. */
export interface Method {
  /** Schema of the input, or of each item if the caller streams. */
  readonly input: StandardSchema;
  /** Schema of the output, or of each item if the server streams. */
  readonly output: StandardSchema;
  /** The side that sends a stream of items instead of one value. Default: neither. */
  readonly stream?: 'input' | 'output' | 'both';
  /**
   * Most bytes of the encoded output for an input. The server reserves memory for it before the handler runs, so that
   * callers that take no outputs cannot make it read more than it may hold. Not for a handler that waits for other
   * calls. Default: 8 KiB are reserved, and the rest when the output is known.
   */
  readonly outputBytesMax?: ((input: never) => number) | undefined;
}

/** Methods by name. */
export type Service = Readonly<Record<string, Method>>;

/** Second argument of a handler. */
export interface CallContext {
  /** Aborted when the caller gives up, its deadline passes, or the connection ends. The output is then discarded. */
  readonly signal: AbortSignal;
}

/** Whether the caller sends a stream. */
export type StreamsIn<M extends Method> = M extends {
  /** As in {@link Method}. */
  readonly stream: 'input' | 'both';
}
  ? true
  : false;
/** Whether the server sends a stream. */
export type StreamsOut<M extends Method> = M extends {
  /** As in {@link Method}. */
  readonly stream: 'output' | 'both';
}
  ? true
  : false;
/** The argument of a call: a value, or the items of a stream. */
export type Sent<M extends Method> =
  StreamsIn<M> extends true ? AsyncIterable<InputOf<M['input']>> | Iterable<InputOf<M['input']>> : InputOf<M['input']>;
/** The input of a handler: a value, or the items of a stream. */
export type Taken<M extends Method> =
  StreamsIn<M> extends true ? AsyncIterable<OutputOf<M['input']>> : OutputOf<M['input']>;
/** The return value of a handler. */
export type Answered<M extends Method> =
  StreamsOut<M> extends true
    ? AsyncIterable<InputOf<M['output']>> | Iterable<InputOf<M['output']>>
    : InputOf<M['output']> | Promise<InputOf<M['output']>>;
/** The result of a call. */
export type Got<M extends Method> =
  StreamsOut<M> extends true ? AsyncIterableIterator<OutputOf<M['output']>> : Promise<OutputOf<M['output']>>;

/** The handlers of a server: a function for each method of the service. It gets the input after validation. */
export type Handlers<S extends Service> = {
  readonly [K in keyof S]: (input: Taken<S[K]>, context: CallContext) => Answered<S[K]>;
};

/** The methods of a client: a function for each method of the service. */
export type Methods<S extends Service> = {
  readonly [K in keyof S]: (input: Sent<S[K]>, options?: WaitOptions) => Got<S[K]>;
};

/** Longest name of a method, in bytes. */
export const NAME_BYTES_MAX = 255;

/**
 * Checks a service and returns it. Throws ERR_ROCE_INVALID_ARGUMENT for a method without schemas, ERR_ROCE_OUT_OF_RANGE
 * for a name that is too long.
 */
export function defineService<const S extends Service>(methods: S): S {
  checkObject('a service', methods, 'an object of methods: {name: {input, output}}');
  for (const [name, method] of Object.entries(methods)) {
    checkObject(`the method ${name}`, method, 'an object: {input, output, stream}');
    for (const side of ['input', 'output'] as const) {
      const isSchema = typeof method[side]?.['~standard']?.validate === 'function';
      checkKind(`${side} of ${name}`, method[side], isSchema, 'a schema (Standard Schema: zod, valibot, arktype ...)');
    }
    const { outputBytesMax } = method;
    const isBound = outputBytesMax === undefined || typeof outputBytesMax === 'function';
    checkKind(`outputBytesMax of ${name}`, outputBytesMax, isBound, 'a function of the input');
    const bytes = Buffer.byteLength(name);
    if (bytes > NAME_BYTES_MAX) {
      throw new RoceError(
        'ERR_ROCE_OUT_OF_RANGE',
        `the method name ${name.slice(0, 20)}... has ${bytes} bytes`,
        '255 at most',
      );
    }
  }
  return methods;
}
