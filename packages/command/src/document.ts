/**
 * A command declares the documents that it prints with --json, each with the type of its fields. scripts/schemas.js
 * finds these declarations and writes a JSON Schema for each into `schemas/` of the package that declares it.
 */

declare const FIELDS: unique symbol;

/** A kind of document, or of JSON lines; `T` is what the command writes, without the head of a document. */
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

/** Declares the JSON lines, without heads, that a command prints before its document. */
export function defineLines<T extends object>(name: string): DocumentKind<T> {
  return { name };
}
