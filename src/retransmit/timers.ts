/**
 * Timers of the transport (IBTA vol. 1 §9.7.6.1.3, §9.9.2.4): local ACK timeout and retry counts, and our extension, a
 * total for a silence.
 */

/** `timeout` 0..31: 4.096 us x 2^timeout in nanoseconds; 0 means never. 14 is 67 ms. */
export function ackTimeoutNs(timeout: number): number {
  return timeout === 0 ? Number.POSITIVE_INFINITY : 4096 * 2 ** timeout;
}

/**
 * `totalTimeout` 0..31 in nanoseconds, coded like `timeout`; 0 means that retries are counted instead. 22 is 17.2 s.
 */
export function totalTimeoutNs(totalTimeout: number): number {
  return totalTimeout === 0 ? 0 : 4096 * 2 ** totalTimeout;
}

/** Timeouts grow to this part of the total, so that the end of a silence is noticed soon. */
const LONGEST_SHARE = 1 / 16;

/**
 * The next timeout when the peer has been silent for `silentNs` of at most `totalNs`: `baseNs` doubled each time, as
 * NVIDIA's adaptive retransmission and RFC 6298 do, up to a sixteenth of the total, and not beyond its end.
 */
export function growingTimeoutNs(baseNs: number, silentNs: number, totalNs: number): number {
  return Math.max(baseNs, Math.min(baseNs + silentNs, totalNs * LONGEST_SHARE, totalNs - silentNs));
}

/** `rnr_retry` 7 means no limit. */
export const RNR_RETRY_INFINITE = 7;
