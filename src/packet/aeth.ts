/**
 * The AETH syndrome byte (IBTA vol. 1 §9.7.5.1, tables 43..46): bits 7..5 say what kind of answer it is, bits 4..0
 * carry the credit count, the RNR timer code or the NAK code. Bit 7 is reserved as zero.
 */

/** Acknowledge with credit code 0; the credit code is in the low five bits. */
export const AETH_ACK = 0x00;
/** Acknowledge without end-to-end flow control (credit code 31): what rxe and NICs with shared receive queues send. */
export const SYNDROME_ACK = 0x1f;
/** Receiver not ready; the timer code is in the low five bits. */
export const SYNDROME_RNR = 0x20;
/** NAK: a PSN was skipped; the requester retransmits from this packet's PSN on. */
export const NAK_PSN_SEQUENCE = 0x60;
/** NAK: the request breaks a rule of the transport or of the responder's queue pair. Fatal. */
export const NAK_INVALID_REQUEST = 0x61;
/** NAK: key, range or rights at the responder do not allow the request. Fatal. */
export const NAK_REMOTE_ACCESS = 0x62;
/** NAK: the responder cannot complete a request that is in order, because of an internal error. Fatal. */
export const NAK_REMOTE_OPERATION = 0x63;

/** Positive acknowledgement; the low five bits are the credit code. */
export const SYNDROME_KIND_ACK = 0;
/** Receiver not ready; the low five bits are the timer code. */
export const SYNDROME_KIND_RNR = 1;
/** Reserved by the standard. */
export const SYNDROME_KIND_RESERVED = 2;
/** Negative acknowledgement; the low five bits are the NAK code. */
export const SYNDROME_KIND_NAK = 3;

/** One of the SYNDROME_KIND_ constants. */
export function syndromeKind(syndrome: number): number {
  const kind = syndrome >>> 5;
  return kind === SYNDROME_KIND_ACK || kind === SYNDROME_KIND_RNR || kind === SYNDROME_KIND_NAK
    ? kind
    : SYNDROME_KIND_RESERVED;
}

const MILLISECONDS: readonly number[] = [
  655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28, 1.92, 2.56, 3.84, 5.12,
  7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52,
];

/** RNR timer code (0..31) -> the shortest time in ns the requester has to wait. Code 0 is the longest. */
export const RNR_TIMER_NS: readonly number[] = MILLISECONDS.map((ms) => Math.round(ms * 1e6));

/** Credit code (0..31) -> receive requests available at the responder; code 31 means that none are counted. */
export const CREDIT_COUNT: readonly number[] = [
  0,
  1,
  2,
  3,
  4,
  6,
  8,
  12,
  16,
  24,
  32,
  48,
  64,
  96,
  128,
  192,
  256,
  384,
  512,
  768,
  1024,
  1536,
  2048,
  3072,
  4096,
  6144,
  8192,
  12288,
  16384,
  24576,
  32768,
  Infinity,
];
