import { isArgumentError, RoceError } from 'rocev2/internal/core';
import { ProcessFailure } from './processes/child-service.js';

export interface CliEnvironment {
  readonly NO_COLOR?: string | undefined;
  readonly FORCE_COLOR?: string | undefined;
  readonly TERM?: string | undefined;
  readonly ROCEV2_DEBUG?: string | undefined;
  readonly ROCEV2_REDIS?: string | undefined;
}

export const EXIT_OK = 0;
export const EXIT_FAILED = 1;
export const EXIT_USAGE = 2;
export const EXIT_NO_CONNECTION = 3;
export const EXIT_VERIFICATION_FAILED = 4;
export const EXIT_INTERRUPTED = 130;

export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
  readonly exitCode: number;

  constructor(exitCode: number, message = '', options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof CommandFailure) return error.exitCode;
  if (isArgumentError(error)) return EXIT_USAGE;
  if (error instanceof RoceError && error.code === 'ERR_ROCE_CONNECT') return EXIT_NO_CONNECTION;
  return EXIT_FAILED;
}

/**
 * The text to print for a failure. An expected failure is one line without a stack: of rocev2, its child processes, the
 * operating system, a disk (`errno`) or NVMe (status). Any other is a defect of this program and keeps its stack.
 * ROCEV2_DEBUG=1 shows the stack of all.
 */
export function describeFailure(error: unknown, env: CliEnvironment): string {
  if (!(error instanceof Error)) return `rocev2: ${String(error)}`;
  const expected =
    error instanceof CommandFailure ||
    error instanceof RoceError ||
    error instanceof ProcessFailure ||
    'syscall' in error ||
    'errno' in error ||
    ('code' in error && error.code === 'ERR_NVME_STATUS');
  if (expected && error.message === '') return '';
  if (expected && env.ROCEV2_DEBUG !== '1') {
    const isShortOfFiles = (error as NodeJS.ErrnoException).code === 'EMFILE';
    return `rocev2: ${error.message}${isShortOfFiles ? ' (raise the limit of open files: ulimit -n 1024)' : ''}`;
  }
  return `rocev2: ${error.stack ?? error.message}`;
}
