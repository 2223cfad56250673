/**
 * How long a queue pair waits before it gives up, and whether that fits the path (IBTA vol. 1 §9.7.6.1.3, §9.9.2.4).
 */

import { formatNs } from 'rocev2/internal/core';
import { ackTimeoutNs } from 'rocev2/internal/retransmit';
import { type Check, check } from './check.js';

/** How a queue pair is set up. */
export interface RetrySettings {
  /** Code of the Local ACK Timeout, 0..31: 4.096 us * 2^n; 0 means never. */
  readonly timeout: number;
  /** Retries, 0..7. */
  readonly retryCount: number;
}

/** What the settings come to, in nanoseconds. */
export interface RetryArithmetic extends RetrySettings {
  /** The timeout; null: the queue pair waits indefinitely. */
  readonly timeoutNs: number | null;
  /** From the first transmission of a packet to the error, at least: each wait takes T; null: never. */
  readonly shortestNs: number | null;
  /** At most: each wait may take 4 T. */
  readonly longestNs: number | null;
}

/** A timeout below this multiple of the longest round trip retransmits packets that are only late. */
const ROUND_TRIPS_MIN = 4;
const LIMIT_NS = 60e9;
/** A timer may wait up to four timeouts (C9-140). */
const SPREAD = 4;

export function retryArithmetic({ timeout, retryCount }: RetrySettings): RetryArithmetic {
  const timeoutNs = timeout === 0 ? null : ackTimeoutNs(timeout);
  const shortestNs = timeoutNs === null ? null : (1 + retryCount) * timeoutNs;
  return { timeout, retryCount, timeoutNs, shortestNs, longestNs: shortestNs === null ? null : SPREAD * shortestNs };
}

export function checkTimeout(settings: RetrySettings, longestRttNs: number | undefined): Check {
  const { timeout, retryCount, timeoutNs, shortestNs, longestNs } = retryArithmetic(settings);
  if (timeoutNs === null || shortestNs === null || longestNs === null) {
    return check(
      'timeout',
      'warning',
      'timeout 0 means never: a lost packet stops the queue pair permanently',
      'set 14 to 18',
    );
  }
  const sums = `timeout ${timeout} is ${formatNs(timeoutNs)}; with ${retryCount} retries a queue pair gives up after ${formatNs(shortestNs)} to ${formatNs(longestNs)} of silence`;
  if (longestRttNs !== undefined && timeoutNs < ROUND_TRIPS_MIN * longestRttNs) {
    const fitting = Math.ceil(Math.log2((ROUND_TRIPS_MIN * longestRttNs) / ackTimeoutNs(1))) + 1;
    const text = `${sums}; the longest round trip took ${formatNs(longestRttNs)}, so the timer retransmits packets that are only late`;
    return check('timeout', 'warning', text, `set timeout ${Math.min(31, fitting)} or more`);
  }
  if (shortestNs > LIMIT_NS) {
    return check('timeout', 'warning', `${sums}: a dead peer is noticed late`, 'set a lower timeout or fewer retries');
  }
  return check('timeout', 'ok', sums);
}
