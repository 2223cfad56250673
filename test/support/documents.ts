/** Documents of `--json` against the published schemas. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { Ajv, type AnySchema, type ValidateFunction } from 'ajv';
import { expect } from 'vitest';

const PACKAGES = new URL('../../packages/', import.meta.url);

/** By its name, the file of each published schema: each package has those of its commands. */
const SCHEMAS = new Map(
  readdirSync(PACKAGES)
    .map((name) => new URL(`${name}/schemas/`, PACKAGES))
    .filter(existsSync)
    .flatMap((folder) =>
      readdirSync(folder).map((file) => [file.replace(/\.json$/, ''), new URL(file, folder)] as const),
    ),
);

/** A published schema leaves unknown fields to newer versions; here none may be unknown. */
function closed(node: unknown): unknown {
  if (node === null || typeof node !== 'object') return node;
  if (Array.isArray(node)) return node.map(closed);
  const entries = Object.entries(node).map(([key, value]) => [key, closed(value)]);
  const isObject = 'properties' in node && !('additionalProperties' in node);
  return Object.fromEntries(isObject ? [...entries, ['additionalProperties', false]] : entries);
}

const validators = new Map<string, ValidateFunction>();

function validator(name: string): ValidateFunction {
  const known = validators.get(name);
  if (known !== undefined) return known;
  const schema = JSON.parse(readFileSync(SCHEMAS.get(name)!, 'utf8'));
  const made = new Ajv({ strictTypes: false, allErrors: true }).compile(closed(schema) as AnySchema);
  validators.set(name, made);
  return made;
}

/** The names of all published schemas. */
export const SCHEMA_NAMES = [...SCHEMAS.keys()];

/** What is wrong with a document. */
export function problemsOf(name: string, document: unknown): unknown[] {
  const validate = validator(name);
  return validate(document) ? [] : validate.errors!;
}

/** The document in the text, which must follow the schema. */
export function documentOf(name: string, text: string): Record<string, unknown> {
  const document = JSON.parse(text);
  expect(problemsOf(name, document), name).toEqual([]);
  return document;
}
