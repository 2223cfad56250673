/** Timer codes of the transport (IBTA vol. 1 §9.7.6.1.3, §9.9.2.4): local ACK timeout and retry counts. */

/** `timeout` 0..31: 4.096 us x 2^timeout in nanoseconds; 0 means never. 14 is 67 ms. */
export function ackTimeoutNs(timeout: number): number {
  return timeout === 0 ? Number.POSITIVE_INFINITY : 4096 * 2 ** timeout;
}

/** `rnr_retry` 7 means without end. */
export const RNR_RETRY_INFINITE = 7;
