/**
 * The contract of a loss-recovery scheme. A scheme has two halves, because what a gap means must be agreed by both ends: the sender's
 * half decides what is sent again, the receiver's half what is kept, forgotten and reported. Queue pairs call the same methods
 * whatever the scheme; the scheme is chosen when the queue pair is connected.
 *
 * Sender: the requester, for requests and for READ responses it waits for. PSNs in [unacked, next) are outstanding.
 * Receiver: the responder, for requests.
 */

export const RECOVERY_NAMES = ['go-back-n', 'go-back-0', 'selective-repeat'] as const;
/** How losses are repaired: by the standard’s go-back-N, or, where both ends agree, by one of the others. */
export type RecoveryName = (typeof RECOVERY_NAMES)[number];

/** `onLoss` answer: nothing to rewind, lost packets come out of `nextResend`. */
export const NO_REWIND = -1;

/** What the requester learned, for schemes that tell the causes apart. */
export const LOSS_REPORTED = 0; // a NAK, a SACK, or a gap in READ responses
export const LOSS_TIMEOUT = 1; // nothing was heard for a whole timeout: earlier conclusions are void

export interface SenderRecovery {
  /**
   * True for the go-back schemes: a reported loss is a retry of everything after it, counts against retry_cnt, and only one runs at a
   * time. False: reports only add packets to resend, and timeouts alone count.
   */
  readonly goesBack: boolean;
  /** A reported loss names the first PSN of a message, part of which may have been acknowledged: the receiver has forgotten it. */
  readonly restartsMessages: boolean;
  /** Outstanding PSNs the scheme can keep account of. */
  readonly spanMax: number;
  /** Starts anew: the next PSN to be sent is `psn`. */
  reset(psn: number): void;
  /**
   * PSNs in [first, end) are missing: `first` certainly, the others unless they are delivered or kept; `messageStart` is the first PSN of the message that holds `first`; `next` the next new PSN. Returns
   * the PSN at which sending resumes, or NO_REWIND.
   */
  onLoss(first: number, end: number, messageStart: number, next: number, cause: number): number;
  /** The answer with `psn` has been placed although something before it is missing: this PSN is done. */
  markDelivered(psn: number): void;
  /** The receiver keeps the request `psn` behind a gap. It is not done: the receiver may still refuse it when its turn comes. */
  markKept(psn: number): void;
  isDelivered(psn: number): boolean;
  /** Everything before `psn` is done; returns the first PSN from there on that is not. */
  advance(psn: number): number;
  /** The next PSN in [unacked, next) to send again out of turn, or -1. */
  nextResend(unacked: number, next: number): number;
  /** `psn` has just been sent again; `next` is the next new PSN. */
  onResent(psn: number, next: number): void;
}

/** What the responder does with a request packet ahead of the expected PSN. */
export const AHEAD_NAK = 0; // drop it; report the gap once
export const AHEAD_FORGET_MESSAGE = 1; // drop it; the message in progress starts over; report its first PSN once
export const AHEAD_KEPT = 2; // stored; report what is there
export const AHEAD_DROPPED = 3; // beyond what can be stored; report what is there

/** What the responder does when a READ or atomic is asked for again. */
export const REPLAY_REWIND = 0; // responses from there on are dropped from the queue: the requester asks for them again
export const REPLAY_APPEND = 1; // only these PSNs are wanted; what is queued stays

export interface ReceiverRecovery {
  readonly replay: typeof REPLAY_REWIND | typeof REPLAY_APPEND;
  /**
   * A READ is executed anew from wherever it is asked for again: go-back-0 restarts messages that are longer than the records reach
   * back, and may ask at once for what it first asked for in several requests, some of which never arrived.
   */
  readonly restartsReads: boolean;
  reset(): void;
  /** A packet `distance` (> 0) ahead of the expected PSN. The bytes are copied if kept. */
  onAhead(psn: number, distance: number, bytes: Uint8Array, offset: number, length: number): number;
  /** True when `psn` starts the message in progress over. `messageStart` is -1 between messages. */
  restartsMessage(psn: number, messageStart: number): boolean;
  /** The kept packet with this PSN, removed from the store; valid until the next call. */
  takeKept(expected: number): KeptPacket | undefined;
  /** Bytes of the bitmap that {@link writeBitmap} would write: 0 when nothing is kept, or the scheme has none. */
  bitmapBytes(expected: number): number;
  /** Bit i of the little-endian bitmap: PSN expected + 1 + i is kept. */
  writeBitmap(expected: number, bytes: Uint8Array, offset: number, length: number): void;
}

export interface KeptPacket {
  readonly bytes: Uint8Array;
  readonly length: number;
}
