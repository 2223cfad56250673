import { isArgumentError, RoceError } from 'rocev2/internal/core';
import { ProcessFailure } from './processes/child-service.js';

export interface CliEnvironment {
  readonly NO_COLOR?: string | undefined;
  readonly FORCE_COLOR?: string | undefined;
  readonly TERM?: string | undefined;
  readonly ROCEV2_DEBUG?: string | undefined;
  readonly ROCEV2_REDIS?: string | undefined;
}

/** Success. */
export const EXIT_OK = 0;
/** The run failed. */
export const EXIT_FAILED = 1;
/** The command line is wrong. */
export const EXIT_USAGE = 2;
/** No connection to the peer. */
export const EXIT_NO_CONNECTION = 3;
/** The data was wrong. */
export const EXIT_VERIFICATION_FAILED = 4;
/** Interrupted: the code a shell reports for a program that SIGINT ended. */
export const EXIT_INTERRUPTED = 130;

/** Thrown by a command to end with an exit code. `message` is printed, unless it is empty. */
export class CommandFailure extends Error {
  /** Always `CommandFailure`. */
  override readonly name = 'CommandFailure';
  /** One of the codes above. */
  readonly exitCode: number;

  /** An empty message prints nothing. */
  constructor(
    /** One of the codes above. */
    exitCode: number,
    message = '',
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** The exit code for what a command threw. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommandFailure) return error.exitCode;
  if (isArgumentError(error)) return EXIT_USAGE;
  if (error instanceof RoceError && error.code === 'ERR_ROCE_CONNECT') return EXIT_NO_CONNECTION;
  return EXIT_FAILED;
}

/**
 * The text to print for a failure. Expected failures (of rocev2, its child processes, the operating system, or with an
 * `errno` as disks have it) are one line without a stack; anything else is a defect of this program and keeps its
 * stack. ROCEV2_DEBUG=1 shows the stack of all.
 */
export function describeFailure(error: unknown, env: CliEnvironment): string {
  if (!(error instanceof Error)) return `rocev2: ${String(error)}`;
  const expected =
    error instanceof CommandFailure ||
    error instanceof RoceError ||
    error instanceof ProcessFailure ||
    'syscall' in error ||
    'errno' in error;
  if (expected && error.message === '') return '';
  if (expected && env.ROCEV2_DEBUG !== '1') {
    const isShortOfFiles = (error as NodeJS.ErrnoException).code === 'EMFILE';
    return `rocev2: ${error.message}${isShortOfFiles ? ' (raise the limit of open files: ulimit -n 1024)' : ''}`;
  }
  return `rocev2: ${error.stack ?? error.message}`;
}
