/**
 * Caller misuse, as thrown errors. Network and peer failures are completion statuses instead (see `ring/enums.ts`), and
 * bad bytes are counted drops; neither ever throws.
 */

/** Codes of errors in the arguments alone: nothing was attempted, and the same call fails again. */
const ARGUMENT_CODES = [
  /** An argument is missing, or of a kind that cannot be used. */
  'ERR_ROCE_INVALID_ARGUMENT',
  /** A number, length or position is out of range; the message gives the range. */
  'ERR_ROCE_OUT_OF_RANGE',
  /** An unknown name; the text lists the known ones. */
  'ERR_ROCE_UNKNOWN_NAME',
  /** A text, file or packet is malformed; the text shows the valid form. */
  'ERR_ROCE_MALFORMED',
  /** Arguments that are valid alone exclude each other. */
  'ERR_ROCE_CONFLICT',
  /** IPv4 and IPv6 are mixed where both ends must be of one family. */
  'ERR_ROCE_ADDRESS_FAMILY',
] as const;

/**
 * All codes of {@link RoceError}, with their meanings. Stable: scripts may match on them. docs/errors.md lists causes
 * and remedies.
 */
export const ERROR_CODES = [
  ...ARGUMENT_CODES,
  /** The object is not in the state that the call needs. */
  'ERR_ROCE_INVALID_STATE',
  /** A work queue has no free element. */
  'ERR_ROCE_QUEUE_FULL',
  /** The object, port or file is still in use. */
  'ERR_ROCE_BUSY',
  'ERR_ROCE_CLOSED',
  /** There is no such object, port or export. */
  'ERR_ROCE_NOT_FOUND',
  /** More than was agreed, or reserved when the object was made. */
  'ERR_ROCE_LIMIT',
  /** This engine, port or peer cannot do that. */
  'ERR_ROCE_UNSUPPORTED',
  /** The peer cannot be reached, refuses, or has gone. */
  'ERR_ROCE_CONNECT',
  /** The peer, or a file, is not the expected one. */
  'ERR_ROCE_MISMATCH',
  'ERR_ROCE_IO',
  'ERR_ROCE_COMPLETION',
  /** The caller's AbortSignal ended the call; `cause` is the signal's reason. */
  'ERR_ROCE_ABORTED',
  /** The call did not finish within its `timeoutMs`. */
  'ERR_ROCE_TIMEOUT',
  /** Another client has taken over, or may have: requests of this one are no longer executed. */
  'ERR_ROCE_FENCED',
  'ERR_ROCE_REMOTE',
] as const;

/** Stable code of a {@link RoceError}. */
export type RoceErrorCode = (typeof ERROR_CODES)[number];

function isErrorCode(code: unknown): boolean {
  return (ERROR_CODES as readonly unknown[]).includes(code);
}

/** A mistake of the caller or a failed set-up step. */
export class RoceError extends Error {
  /** Always `RoceError`. */
  override readonly name = 'RoceError';
  /** For programs: what kind of failure it is. docs/errors.md lists the causes and the remedies. */
  readonly code: RoceErrorCode;
  /** For people: what to do next. The message ends with it, in parentheses. Undefined if there is nothing to add. */
  readonly hint: string | undefined;

  /**
   * `message` describes the problem, without the hint; `options.cause` is the underlying error, such as the operating
   * system's.
   */
  constructor(code: RoceErrorCode, message: string, hint?: string, options?: ErrorOptions) {
    super(hint === undefined ? message : `${message} (${hint})`, options);
    this.code = code;
    this.hint = hint;
  }

  /**
   * `instanceof RoceError` recognises errors by their code, so also those of a second copy of this library, as in a
   * bundle or an extension.
   */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore lint/complexity/noThisInStatic: subclasses inherit the method, and `this` names the subclass.
    return isInstance(this, value);
  }
}

/** By the prototype, or, of RoceError itself, by the code. */
function isInstance(type: unknown, value: unknown): boolean {
  if (Function.prototype[Symbol.hasInstance].call(type as () => void, value)) return true;
  return type === RoceError && value instanceof Error && isErrorCode((value as { readonly code?: unknown }).code);
}

export function isArgumentError(error: unknown): error is RoceError {
  return error instanceof RoceError && (ARGUMENT_CODES as readonly string[]).includes(error.code);
}

export interface SerializedRoceError {
  readonly code: RoceErrorCode;
  readonly message: string;
}

export function serializeError(error: unknown): SerializedRoceError {
  if (error instanceof RoceError) return { code: error.code, message: error.message };
  return { code: 'ERR_ROCE_IO', message: error instanceof Error ? error.message : String(error) };
}

/** A violated invariant of this package: stops the run, also in production. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

export function invariant(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvariantError(`invariant broken: ${message}`);
}
