/**
 * Times of connection management. On the wire they are codes n for 4.096 us x 2^n (IBTA vol. 1 §12.7); the defaults are those of
 * Linux (drivers/infiniband/core/cma.c).
 */

/** Timeouts and retries of connection management. */
export interface CmTiming {
  /** How long either side may take to answer, as a code: 20 is 4.3 s. 0..31. */
  readonly responseTimeout: number;
  /** How long a packet may live in the network, as a code: 16 is 0.27 s. 0..31. */
  readonly packetLifetime: number;
  /** How often REQ, REP and DREQ are sent again, 0..15. */
  readonly maxRetries: number;
}

/** What Linux uses. */
export const LINUX_TIMING: CmTiming = { responseTimeout: 20, packetLifetime: 16, maxRetries: 15 };

/** Codes have five bits. */
const CODE_MAX = 31;

/** Nanoseconds of a code 0..31: 4.096 us x 2^code. */
export function codeToNs(code: number): number {
  return 4096 * 2 ** code;
}

/** From sending a REQ, or any answer, to sending it again: there and back, and the peer's time to think. */
export function resendNs(timing: CmTiming): number {
  return 2 * codeToNs(timing.packetLifetime) + codeToNs(timing.responseTimeout);
}

/** The Local ACK Timeout that is offered: there and back. */
export function ackTimeoutCode(timing: CmTiming): number {
  return Math.min(timing.packetLifetime + 1, CODE_MAX);
}

/** ... and with the time the peer's device takes to acknowledge: the sum, as a code not below it. */
export function ackTimeoutWithDelay(ackTimeout: number, targetAckDelay: number): number {
  const larger = Math.max(ackTimeout, targetAckDelay);
  const smaller = Math.min(ackTimeout, targetAckDelay);
  return Math.min(smaller >= larger - 1 ? larger + 1 : larger, CODE_MAX);
}
