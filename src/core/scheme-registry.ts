/**
 * All lists of schemes, and all lookups by name, use the registry. Each thread and each process has its own;
 * between them a scheme is known by its name.
 */

import { checkObject, shown } from './arguments.js';
import { namesHint } from './did-you-mean.js';
import { RoceError } from './errors.js';
import {
  completeParameters,
  isInRange,
  PARAMETERS_MAX,
  type ParameterRange,
  type ParametersOf,
  type ParameterTable,
  packParameters,
  unpackParameters,
} from './parameters.js';

export interface SchemeDefinition {
  readonly name: string;
  readonly summary: string;
  readonly parameters: ParameterTable;
}

export type SchemeOptions = string | { readonly name: string };

const NAME = /^[a-z][a-z0-9-]{0,30}$/;
const PARAMETER_NAME = /^[a-z][A-Za-z0-9]*$/;
const RESERVED = ['name', 'preset'];

/** Two definitions never have one name, and none is ever removed. */
export class SchemeRegistry<D extends SchemeDefinition> {
  readonly #kind: string;
  readonly #methods: ReadonlyArray<keyof D & string>;
  readonly #schemes = new Map<string, D>();

  constructor(kind: string, methods: ReadonlyArray<keyof D & string>, builtIn: readonly D[]) {
    this.#kind = kind;
    this.#methods = methods;
    for (const definition of builtIn) this.register(definition);
  }

  get names(): readonly string[] {
    return [...this.#schemes.keys()];
  }

  get definitions(): readonly D[] {
    return [...this.#schemes.values()];
  }

  get(name: unknown): D {
    const definition = typeof name === 'string' ? this.#schemes.get(name) : undefined;
    if (definition !== undefined) return definition;
    const hint = namesHint(name, this.names, 'there are');
    throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `there is no ${this.#kind} ${shown(name)}`, hint);
  }

  register(definition: D): void {
    this.check(definition);
    this.#schemes.set(definition.name, definition);
  }

  check(definition: SchemeDefinition, reserved: readonly string[] = []): void {
    checkObject(`what registers a ${this.#kind}`, definition, 'an object: name, summary, parameters');
    const { name, summary, parameters } = definition;
    const fault = this.#faultOfName(name) ?? faultOfSummary(summary) ?? faultOfTable(parameters, reserved);
    const missing = this.#methods.find((method) => typeof (definition as D)[method] !== 'function');
    const why = fault ?? (missing === undefined ? undefined : `it has no ${missing}()`);
    if (why === undefined) return;
    throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', `${this.#kind} '${String(name)}' cannot be registered: ${why}`);
  }

  #faultOfName(name: unknown): string | undefined {
    if (typeof name !== 'string' || !NAME.test(name)) {
      return 'a name has 1 to 31 lower-case letters, digits and hyphens, a letter first';
    }
    return this.#schemes.has(name) ? 'the name is taken' : undefined;
  }

  complete(options: SchemeOptions): { readonly name: string } {
    const { name, ...given } = this.#named(options);
    return { name, ...this.#values(name, given) };
  }

  #named(options: SchemeOptions): { readonly name: string } {
    if (typeof options === 'object' && options !== null) return options;
    return { name: this.get(options).name };
  }

  #values(name: string, given: Readonly<Record<string, number | undefined>>): ParametersOf<ParameterTable> {
    return completeParameters(this.#kind, this.get(name).parameters, given);
  }

  pack(options: SchemeOptions): PackedScheme {
    const { name, ...given } = this.#named(options);
    return { name, block: packParameters(this.get(name).parameters, this.#values(name, given)) };
  }

  /** From the command ring, checked again: the block may come from another thread. */
  unpack(name: string, block: Float64Array): { readonly name: string } {
    return { name, ...this.#values(name, unpackParameters(this.get(name).parameters, block)) };
  }
}

export interface PackedScheme {
  readonly name: string;
  readonly block: Float64Array;
}

function faultOfSummary(summary: unknown): string | undefined {
  const isLine = typeof summary === 'string' && summary !== '' && !summary.includes('\n');
  return isLine ? undefined : 'its summary is not one line';
}

function faultOfTable(table: unknown, reserved: readonly string[]): string | undefined {
  if (typeof table !== 'object' || table === null) return 'its parameters are not a table';
  const entries = Object.entries(table);
  if (entries.length > PARAMETERS_MAX) return `it has ${entries.length} parameters, more than ${PARAMETERS_MAX}`;
  for (const [name, range] of entries) {
    if (!PARAMETER_NAME.test(name) || RESERVED.includes(name) || reserved.includes(name)) {
      return `'${name}' cannot be the name of a parameter`;
    }
    if (!isRange(range)) return `parameter ${name} needs numbers min, max and default`;
    if (!isInRange(range, range.default)) return `the default of parameter ${name} is not in its range`;
  }
  return undefined;
}

function isRange(range: unknown): range is ParameterRange {
  if (typeof range !== 'object' || range === null) return false;
  const { min, max, default: usual } = range as Partial<ParameterRange>;
  return [min, max, usual].every(Number.isFinite) && (min as number) <= (max as number);
}
