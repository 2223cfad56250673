/**
 * The interface to schema libraries: Standard Schema (https://standardschema.dev), version 1, which zod, valibot,
 * arktype and others implement.
 */

import { RpcError } from './rpc-error.js';

/** An issue: why a value does not fit the schema. */
export interface SchemaIssue {
  /** For people. */
  readonly message: string;
  /** Path to the place in the value: keys, or objects with a key. */
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

/** Result of a validation. */
export type SchemaResult<Output> =
  | {
      /** The value after validation. */
      readonly value: Output;
      /** Undefined: the value is valid. */
      readonly issues?: undefined;
    }
  | {
      /** The issues. */
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

/** The type that a schema accepts. */
export type InputOf<S extends StandardSchema> = NonNullable<S['~standard']['types']>['input'];
/** The type after validation. */
export type OutputOf<S extends StandardSchema> = NonNullable<S['~standard']['types']>['output'];

const TEXT_MAX = 500;

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
