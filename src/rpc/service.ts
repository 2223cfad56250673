/** What a service is: methods by name, each with the schemas of what goes in and comes out. Both ends share it. */

import { checkKind, checkObject } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import type { WaitOptions } from '../core/wait.js';
import type { InputOf, OutputOf, StandardSchema } from './schema.js';

/** One method. */
export interface Method {
  /** Of the input, or of each item where the caller streams. */
  readonly input: StandardSchema;
  /** Of the output, or of each item where the server streams. */
  readonly output: StandardSchema;
  /** Which side sends a stream of items instead of one value. Default: neither. */
  readonly stream?: 'input' | 'output' | 'both';
}

/** Methods by name. */
export type Service = Readonly<Record<string, Method>>;

/** What a handler knows beside its input. */
export interface CallContext {
  /** Aborted when the caller gives up, its time is over, or the connection ends. Nobody waits for the output then. */
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
/** What a caller passes to a method: a value, or the items of a stream. */
export type Sent<M extends Method> =
  StreamsIn<M> extends true ? AsyncIterable<InputOf<M['input']>> | Iterable<InputOf<M['input']>> : InputOf<M['input']>;
/** What a handler gets of it. */
export type Taken<M extends Method> =
  StreamsIn<M> extends true ? AsyncIterable<OutputOf<M['input']>> : OutputOf<M['input']>;
/** What a handler answers. */
export type Answered<M extends Method> =
  StreamsOut<M> extends true
    ? AsyncIterable<InputOf<M['output']>> | Iterable<InputOf<M['output']>>
    : InputOf<M['output']> | Promise<InputOf<M['output']>>;
/** What the caller gets of it. */
export type Got<M extends Method> =
  StreamsOut<M> extends true ? AsyncIterableIterator<OutputOf<M['output']>> : Promise<OutputOf<M['output']>>;

/** A function for each method of the service: what the server does. It gets what the schemas made of the input. */
export type Handlers<S extends Service> = {
  readonly [K in keyof S]: (input: Taken<S[K]>, context: CallContext) => Answered<S[K]>;
};

/** A function for each method of the service: what the client calls. */
export type Methods<S extends Service> = {
  readonly [K in keyof S]: (input: Sent<S[K]>, options?: WaitOptions) => Got<S[K]>;
};

/** Longest name of a method, in bytes. */
export const NAME_BYTES_MAX = 255;

/** Checks a service and returns it. Throws ERR_ROCE_INVALID_ARGUMENT for what has no schemas, ERR_ROCE_OUT_OF_RANGE for a name that is too long. */
export function defineService<const S extends Service>(methods: S): S {
  checkObject('a service', methods, 'an object of methods: {name: {input, output}}');
  for (const [name, method] of Object.entries(methods)) {
    checkObject(`the method ${name}`, method, 'an object: {input, output, stream}');
    for (const side of ['input', 'output'] as const) {
      const isSchema = typeof method[side]?.['~standard']?.validate === 'function';
      checkKind(`${side} of ${name}`, method[side], isSchema, 'a schema (Standard Schema: zod, valibot, arktype ...)');
    }
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
