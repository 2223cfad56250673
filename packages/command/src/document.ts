/**
 * A command declares the documents that it prints with --json, each with the type of its fields. scripts/schemas.js finds these declarations and
 * writes a JSON Schema for each into `schemas/` of the package that declares it.
 */

declare const FIELDS: unique symbol;

/** A kind of document; `T` is what the command adds to the head. */
export interface DocumentKind<T extends object> {
  /** Name of the schema: `schemas/NAME.json`. */
  readonly name: string;
  /** Only the compiler reads this. */
  readonly [FIELDS]?: (fields: T) => void;
}

/** Declares the document of a command: `bw`, or `sim-run` for `rocev2 sim run`. */
export function defineDocument<T extends object>(name: string): DocumentKind<T> {
  return { name };
}

/** A kind of JSON line, printed without a head before the document. */
export interface LineKind<T extends object> {
  /** Name of the schema: `schemas/NAME.json`. */
  readonly name: string;
  /** Only the compiler reads this. */
  readonly [FIELDS]?: (fields: T) => void;
}

/** Declares the lines that a command prints before its document. */
export function defineLines<T extends object>(name: string): LineKind<T> {
  return { name };
}
