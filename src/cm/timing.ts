/**
 * Times of connection management. On the wire they are codes n for 4.096 us x 2^n (IBTA vol. 1 §12.7); the defaults are
 * those of Linux (drivers/infiniband/core/cma.c).
 */

/** Timeouts and retries of connection management. */
export interface CmTiming {
  /** How long either side may take to answer, as a code: 20 is 4.3 s. 0..31. */
  readonly responseTimeout: number;
  /** How long a packet may live in the network, as a code: 16 is 0.27 s. 0..31. */
  readonly packetLifetime: number;
  /** Maximum retransmissions of REQ, REP and DREQ, 0..15. */
  readonly maxRetries: number;
}

export const LINUX_TIMING: CmTiming = { responseTimeout: 20, packetLifetime: 16, maxRetries: 15 };

const CODE_MAX = 31;

/** Nanoseconds of a code 0..31: 4.096 us x 2^code. */
export function codeToNs(code: number): number {
  return 4096 * 2 ** code;
}

/**
 * Limits of the times that a peer may request, as codes: 1 ms between two transmissions of a message, 4.3 s in TIMEWAIT
 * and between them, 69 s by an MRA (Linux asks for these), and 8.6 s for a queue pair's timer. Larger requests are
 * clamped.
 */
const RESEND_CODE_MIN = 8;
const RESEND_CODE_MAX = 20;
const TIMEWAIT_CODE_MAX = 20;
const MRA_CODE_MAX = 24;
const ACK_TIMEOUT_CODE_MAX = 21;

/** Service time in our MRAs: 69 s, as Linux does. */
export const MRA_SERVICE_TIMEOUT = MRA_CODE_MAX;

/**
 * Nanoseconds until a message is retransmitted to a peer that announces to answer within a code 0..31: 1 ms to 4.3 s.
 */
export function peerResendNs(code: number): number {
  return codeToNs(Math.min(Math.max(code, RESEND_CODE_MIN), RESEND_CODE_MAX));
}

/** Nanoseconds in TIMEWAIT for a peer that announces a packet lifetime code 0..31: at most 4.3 s. */
export function peerTimewaitNs(code: number): number {
  return codeToNs(Math.min(code, TIMEWAIT_CODE_MAX));
}

/** Nanoseconds a peer gets that asks for time by an MRA with a code 0..31: at most 69 s. */
export function peerServiceNs(code: number): number {
  return codeToNs(Math.min(code, MRA_CODE_MAX));
}

/**
 * The Local ACK Timeout that a queue pair takes from its peer. 0 would wait indefinitely (IBTA vol. 1 §9.7.6.1.3), and
 * becomes the longest: 8.6 s.
 */
export function peerAckTimeout(code: number): number {
  return code === 0 ? ACK_TIMEOUT_CODE_MAX : Math.min(code, ACK_TIMEOUT_CODE_MAX);
}

/** Time before a REQ or an answer is retransmitted: the round trip, and the peer's processing time. */
export function resendNs(timing: CmTiming): number {
  return 2 * codeToNs(timing.packetLifetime) + codeToNs(timing.responseTimeout);
}

/** The Local ACK Timeout that is offered: the round trip. */
export function ackTimeoutCode(timing: CmTiming): number {
  return Math.min(timing.packetLifetime + 1, CODE_MAX);
}

/** ... and with the time the peer's device takes to acknowledge: the sum, as a code not below it. */
export function ackTimeoutWithDelay(ackTimeout: number, targetAckDelay: number): number {
  const larger = Math.max(ackTimeout, targetAckDelay);
  const smaller = Math.min(ackTimeout, targetAckDelay);
  return Math.min(smaller >= larger - 1 ? larger + 1 : larger, CODE_MAX);
}
