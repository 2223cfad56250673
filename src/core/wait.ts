/**
 * How long a caller waits: until an `AbortSignal` is aborted, or a time is up. Every call that waits for a peer takes
 * the same two options and ends with the same error.
 */

import { whenAborted } from './abort-listeners.js';
import { checkKind, checkOptions, type OptionNames } from './arguments.js';
import type { Clock } from './clock.js';
import { RoceError } from './errors.js';
import { NS_PER_MS } from './units.js';

/** Limits a call that waits. Without these options it waits indefinitely. */
export interface WaitOptions {
  /**
   * The call rejects with ERR_ROCE_ABORTED when this signal is aborted. If it is aborted already, the call does
   * nothing.
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * The call rejects with ERR_ROCE_TIMEOUT after this time. Milliseconds, 0 to 2^31 - 1, or Infinity. Measured by the
   * device's clock.
   */
  readonly timeoutMs?: number | undefined;
}

export const WAIT_OPTIONS: OptionNames<WaitOptions> = { signal: true, timeoutMs: true };

/** Timers count in 32 bits. */
const TIMEOUT_MS_MAX = 0x7fffffff;
const RELEASED = Promise.resolve();

/** A call ended before its work: ERR_ROCE_ABORTED or ERR_ROCE_TIMEOUT. */
export class WaitEnded extends RoceError {
  /**
   * Resolves when the call no longer uses anything of the program's. Until then the NIC may read or write the memory
   * that was passed, because a posted work request cannot be taken back. Never rejects.
   */
  readonly released: Promise<void>;

  /** @internal */
  constructor(
    code: 'ERR_ROCE_ABORTED' | 'ERR_ROCE_TIMEOUT',
    message: string,
    { cause, released = RELEASED }: { readonly cause?: unknown; readonly released?: Promise<void> },
  ) {
    super(code, message, undefined, cause === undefined ? undefined : { cause });
    this.released = released;
  }
}

/** How long one call waits, from the moment of the call on: until its deadline, or until its signal is aborted. */
export class WaitDeadline {
  readonly #call: string;
  readonly #signal: AbortSignal | undefined;
  readonly #timeoutMs: number;
  readonly #deadlineNs: number;
  readonly #clock: Clock;

  private constructor(call: string, { signal, timeoutMs = Number.POSITIVE_INFINITY }: WaitOptions, clock: Clock) {
    this.#call = call;
    this.#signal = signal;
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
    this.#deadlineNs =
      timeoutMs === Number.POSITIVE_INFINITY ? timeoutMs : clock.nowNs() + Math.ceil(timeoutMs * NS_PER_MS);
  }

  /**
   * Undefined if the caller waits indefinitely. `call` is how errors name the call, `known` all options of a
   * call that has more than {@link WaitOptions}.
   */
  static of<O extends WaitOptions>(
    call: string,
    options: O | undefined,
    clock: Clock,
    ...[known]: keyof O extends keyof WaitOptions ? [] : [known: OptionNames<O>]
  ): WaitDeadline | undefined {
    if (options === undefined) return undefined;
    checkWait(call, options, known);
    const { signal, timeoutMs } = options;
    if (signal === undefined && timeoutMs === undefined) return undefined;
    const deadline = new WaitDeadline(call, options, clock);
    if (signal?.aborted === true) throw deadline.#aborted();
    return deadline;
  }

  /** Refuses options that cannot be, of a call that waits later and several times. */
  static check<O extends WaitOptions>(
    call: string,
    options: O | undefined,
    ...[known]: keyof O extends keyof WaitOptions ? [] : [known: OptionNames<O>]
  ): void {
    if (options !== undefined) checkWait(call, options, known);
  }

  /**
   * Calls `onEnd` once, never from inside this call, when the call is to end. The result cancels that. `released` goes
   * into the error.
   */
  watch(onEnd: (error: WaitEnded) => void, released?: Promise<void>): () => void {
    const signal = this.#signal;
    const ignoreAbort =
      signal === undefined
        ? () => {}
        : whenAborted(signal, () => {
            stop();
            onEnd(this.#aborted(released));
          });
    const cancelTimer =
      this.#deadlineNs === Number.POSITIVE_INFINITY
        ? () => {}
        : this.#clock.wakeAt(this.#deadlineNs, () => {
            stop();
            onEnd(this.#late(released));
          });
    const stop = () => {
      cancelTimer();
      ignoreAbort();
    };
    return stop;
  }

  #aborted(released?: Promise<void>): WaitEnded {
    const cause: unknown = this.#signal!.reason;
    return new WaitEnded('ERR_ROCE_ABORTED', `${this.#call} was aborted`, { cause, ...(released && { released }) });
  }

  #late(released?: Promise<void>): WaitEnded {
    const message = `${this.#call} did not finish within ${this.#timeoutMs} ms`;
    return new WaitEnded('ERR_ROCE_TIMEOUT', message, released ? { released } : {});
  }
}

function checkWait<O extends WaitOptions>(call: string, options: O, known: OptionNames<O> | undefined): void {
  checkOptions(call, options, known ?? WAIT_OPTIONS);
  const { signal, timeoutMs } = options;
  if (signal !== undefined) {
    const isSignal = typeof signal?.addEventListener === 'function' && typeof signal.aborted === 'boolean';
    checkKind('signal', signal, isSignal, 'an AbortSignal');
  }
  if (timeoutMs !== undefined) checkTimeout(timeoutMs);
}

function checkTimeout(timeoutMs: number): void {
  if (timeoutMs === Number.POSITIVE_INFINITY) return;
  checkKind('timeoutMs', timeoutMs, typeof timeoutMs === 'number', 'a number of milliseconds');
  if (timeoutMs >= 0 && timeoutMs <= TIMEOUT_MS_MAX) return;
  throw new RoceError(
    'ERR_ROCE_OUT_OF_RANGE',
    `timeoutMs is ${timeoutMs}`,
    `it must be from 0 to ${TIMEOUT_MS_MAX}, or Infinity`,
  );
}

/** Tells work in progress that its caller no longer waits. */
export interface CancellationState {
  error: WaitEnded | undefined;
  onEnd: ((error: WaitEnded) => void) | undefined;
}

/**
 * Waits for `work` until `deadline`. At the deadline the call rejects at once, and the work continues to its end, which
 * is the error's `released`; `undo` then gets its result.
 */
export function waitFor<T>(
  deadline: WaitDeadline | undefined,
  work: (cancellation: CancellationState) => Promise<T>,
  undo?: (value: T) => Promise<void>,
): Promise<T> {
  const cancellation: CancellationState = { error: undefined, onEnd: undefined };
  if (deadline === undefined) return work(cancellation);
  const { promise: released, resolve: release } = withResolvers();
  return new Promise((resolve, reject) => {
    const stop = deadline.watch((error) => {
      cancellation.error = error;
      reject(error);
      cancellation.onEnd?.(error);
    }, released);
    const onDone = async (value: T) => {
      stop();
      resolve(value); // No effect once the caller has been rejected.
      if (cancellation.error !== undefined) await undo?.(value).catch(() => {});
      release();
    };
    const onFailed = (error: unknown) => {
      stop();
      reject(error);
      release();
    };
    work(cancellation).then(onDone, onFailed);
  });
}

/** Waits until `deadline` for work that continues with or without a waiter. */
export async function waitForEvent<T>(deadline: WaitDeadline | undefined, event: Promise<T>): Promise<T> {
  if (deadline === undefined) return event;
  const { promise: ended, reject } = withResolvers();
  const stop = deadline.watch(reject);
  return Promise.race([event, ended as Promise<never>]).finally(stop);
}

function withResolvers(): {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
} {
  let resolve = () => {};
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<void>((done, failed) => {
    resolve = done;
    reject = failed;
  });
  return { promise, resolve, reject };
}

interface Waiter<T, R> {
  readonly request: R;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
  stop: () => void;
}

/** A caller that gives up does not affect the others. */
export class WaitList<T, R = undefined> {
  readonly #waiters = new Set<Waiter<T, R>>();

  get size(): number {
    return this.#waiters.size;
  }

  /** Resolves to the value of {@link serve}; rejects at the deadline. */
  wait(deadline: WaitDeadline | undefined, request: R): Promise<T> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter<T, R> = { request, resolve, reject, stop: () => {} };
      this.#waiters.add(waiter);
      if (deadline === undefined) return;
      waiter.stop = deadline.watch((error) => {
        this.#waiters.delete(waiter);
        reject(error);
      });
    });
  }

  serve(make: (request: R) => T): boolean {
    const waiter = this.#next();
    waiter?.resolve(make(waiter.request));
    return waiter !== undefined;
  }

  fail(error: Error): boolean {
    const waiter = this.#next();
    waiter?.reject(error);
    return waiter !== undefined;
  }

  #next(): Waiter<T, R> | undefined {
    for (const waiter of this.#waiters) {
      this.#waiters.delete(waiter);
      waiter.stop();
      return waiter;
    }
    return undefined;
  }

  serveAll(make: (request: R) => T): void {
    while (this.serve(make));
  }

  failAll(error: Error): void {
    while (this.fail(error));
  }
}
