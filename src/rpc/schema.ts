/**
 * What the package takes from schema libraries: the interface of Standard Schema (https://standardschema.dev), version 1, which zod, valibot, arktype
 * and others implement. No library is loaded for it.
 */

import { RpcError } from './rpc-error.js';

/** Why a value does not fit. */
export interface SchemaIssue {
  /** For people. */
  readonly message: string;
  /** Where in the value: keys, or objects that hold one. */
  readonly path?:
    | ReadonlyArray<
        | PropertyKey
        | {
            /** The key. */
            readonly key: PropertyKey;
          }
      >
    | undefined;
}

/** What a validation yields. */
export type SchemaResult<Output> =
  | {
      /** What the schema makes of the value. */
      readonly value: Output;
      /** None. */
      readonly issues?: undefined;
    }
  | {
      /** Why it does not fit. */
      readonly issues: readonly SchemaIssue[];
    };

/** A schema of any library that implements Standard Schema. */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** The interface, version 1. */
  readonly '~standard': {
    /** Of the interface. */
    readonly version: 1;
    /** Name of the library. */
    readonly vendor: string;
    /** Checks a value, and may change it. */
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    /** For the compiler only. */
    readonly types?:
      | {
          /** What goes in. */
          readonly input: Input;
          /** What comes out. */
          readonly output: Output;
        }
      | undefined;
  };
}

/** What a program passes for a schema. */
export type InputOf<S extends StandardSchema> = NonNullable<S['~standard']['types']>['input'];
/** What the schema makes of it. */
export type OutputOf<S extends StandardSchema> = NonNullable<S['~standard']['types']>['output'];

/** Longest text about issues that crosses the wire, in characters. */
const TEXT_MAX = 500;

/** The value as the schema makes it. Rejects with an RpcError `INVALID`, which names the first places that do not fit. */
export async function validated(schema: StandardSchema, value: unknown, what: string): Promise<unknown> {
  const result = await schema['~standard'].validate(value);
  if (result.issues === undefined) return result.value;
  const text = result.issues.slice(0, 3).map(textOf).join('; ');
  throw new RpcError('INVALID', `${what} does not fit: ${text}`.slice(0, TEXT_MAX));
}

function textOf({ message, path = [] }: SchemaIssue): string {
  const keys = path.map((part) => String(typeof part === 'object' ? part.key : part));
  return keys.length === 0 ? message : `${keys.join('.')}: ${message}`;
}
