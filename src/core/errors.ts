/**
 * Caller misuse, as thrown errors. Network and peer failures are completion statuses instead (see `ring/enums.ts`), and bad
 * bytes are counted drops; neither ever throws.
 */

/** Every code a {@link RoceError} can carry. Stable: scripts may match on them. */
export const ERROR_CODES = [
  'ERR_ROCE_INVALID_ARGUMENT',
  'ERR_ROCE_INVALID_STATE',
  'ERR_ROCE_QUEUE_FULL',
  'ERR_ROCE_BUSY',
  'ERR_ROCE_CLOSED',
  'ERR_ROCE_NOT_FOUND',
  'ERR_ROCE_LIMIT',
  'ERR_ROCE_UNSUPPORTED',
  'ERR_ROCE_CONNECT',
  'ERR_ROCE_MISMATCH',
  'ERR_ROCE_IO',
  'ERR_ROCE_COMPLETION',
] as const;

/** Stable code of a {@link RoceError}. */
export type RoceErrorCode = (typeof ERROR_CODES)[number];

/** A mistake of the caller or a failed set-up step: `code` for programs, `message` for people, `hint` for what to do next. */
export class RoceError extends Error {
  override readonly name = 'RoceError';
  readonly code: RoceErrorCode;
  readonly hint: string | undefined;

  constructor(code: RoceErrorCode, message: string, hint?: string, options?: ErrorOptions) {
    super(hint === undefined ? message : `${message} (${hint})`, options);
    this.code = code;
    this.hint = hint;
  }
}

/** A {@link RoceError} as a message between threads or processes carries it. */
export interface SerializedRoceError {
  readonly code: RoceErrorCode;
  readonly message: string;
}

/** What went wrong, whatever was thrown: what is no RoceError becomes ERR_ROCE_IO. */
export function serializeError(error: unknown): SerializedRoceError {
  if (error instanceof RoceError) return { code: error.code, message: error.message };
  return { code: 'ERR_ROCE_IO', message: error instanceof Error ? error.message : String(error) };
}

/** A broken promise of our own code: stops the run, in production too. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

export function invariant(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvariantError(`invariant broken: ${message}`);
}
