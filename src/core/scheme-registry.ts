/**
 * The schemes of one kind by name: those of the package, and those that programs register. Everything that lists schemes, or turns a name
 * into one, asks the registry. Each thread and each process has its own; between them a scheme is known by its name.
 */

import { shown } from './arguments.js';
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

/** What every scheme says of itself. */
export interface SchemeDefinition {
  /** Lower-case letters, digits and hyphens, 1 to 31, a letter first. */
  readonly name: string;
  /** One line for help and tables. */
  readonly summary: string;
  /** Its parameters, at most 24. */
  readonly parameters: ParameterTable;
}

/** A name alone, or a name and beside it parameters: as programs give them, or complete. */
export type SchemeOptions = string | { readonly name: string };

const NAME = /^[a-z][a-z0-9-]{0,30}$/;
const PARAMETER_NAME = /^[a-z][A-Za-z0-9]*$/;
/** Keys that options have beside parameters. */
const RESERVED = ['name', 'preset'];

/** Definitions by name. Two definitions never have one name, and none is ever removed. */
export class SchemeRegistry<D extends SchemeDefinition> {
  readonly #kind: string;
  readonly #methods: ReadonlyArray<keyof D & string>;
  readonly #schemes = new Map<string, D>();

  /** `kind` says in errors what the schemes are: 'rate control'. Every definition must have the `methods`. */
  constructor(kind: string, methods: ReadonlyArray<keyof D & string>, builtIn: readonly D[]) {
    this.#kind = kind;
    this.#methods = methods;
    for (const definition of builtIn) this.register(definition);
  }

  /** The names, those of the package first, then in the order of registration. */
  get names(): readonly string[] {
    return [...this.#schemes.keys()];
  }

  /** All definitions, in the order of {@link names}. */
  get definitions(): readonly D[] {
    return [...this.#schemes.values()];
  }

  /** The scheme of that name. Throws ERR_ROCE_UNKNOWN_NAME with the known names when there is none. */
  get(name: unknown): D {
    const definition = typeof name === 'string' ? this.#schemes.get(name) : undefined;
    if (definition !== undefined) return definition;
    const hint = namesHint(name, this.names, 'there are');
    throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `there is no ${this.#kind} ${shown(name)}`, hint);
  }

  /** Adds a scheme. Throws ERR_ROCE_INVALID_ARGUMENT for what {@link check} refuses. */
  register(definition: D): void {
    this.check(definition);
    this.#schemes.set(definition.name, definition);
  }

  /**
   * Throws ERR_ROCE_INVALID_ARGUMENT for a name that is taken or malformed, a summary of several lines, a bad table of parameters, a parameter
   * with a `reserved` name, and a method that is missing.
   */
  check(definition: SchemeDefinition, reserved: readonly string[] = []): void {
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

  /**
   * The parameters of a scheme, complete: given ones checked, others at their defaults. Throws ERR_ROCE_UNKNOWN_NAME for a
   * scheme or parameter that there is not, ERR_ROCE_OUT_OF_RANGE for a value.
   */
  complete(options: SchemeOptions): { readonly name: string } {
    const { name, ...given } = this.#named(options);
    return { name, ...this.#values(name, given) };
  }

  /** What callers without types pass is refused by name. */
  #named(options: SchemeOptions): { readonly name: string } {
    if (typeof options === 'object' && options !== null) return options;
    return { name: this.get(options).name };
  }

  #values(name: string, given: Readonly<Record<string, number | undefined>>): ParametersOf<ParameterTable> {
    return completeParameters(this.#kind, this.get(name).parameters, given);
  }

  /** For the command ring: the name, and the parameters as a block of numbers. Throws like {@link complete}. */
  pack(options: SchemeOptions): PackedScheme {
    const { name, ...given } = this.#named(options);
    return { name, block: packParameters(this.get(name).parameters, this.#values(name, given)) };
  }

  /** From the command ring, checked again: the block may come from another thread. Throws like {@link complete}. */
  unpack(name: string, block: Float64Array): { readonly name: string } {
    return { name, ...this.#values(name, unpackParameters(this.get(name).parameters, block)) };
  }
}

/** A scheme as it crosses the command ring. */
export interface PackedScheme {
  /** By which both sides of the ring look it up. */
  readonly name: string;
  /** The parameters in the order of the table. */
  readonly block: Float64Array;
}

function faultOfSummary(summary: unknown): string | undefined {
  const isLine = typeof summary === 'string' && summary !== '' && !summary.includes('\n');
  return isLine ? undefined : 'its summary is not one line';
}

function faultOfTable(table: unknown, reserved: readonly string[]): string | undefined {
  if (typeof table !== 'object' || table === null) return 'its parameters are no table';
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
