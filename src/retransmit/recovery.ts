/**
 * The contract of a loss-recovery scheme. A scheme has two halves, because both ends must agree on the meaning of a
 * gap. The sender's half decides what is retransmitted. The receiver's half decides what is buffered, dropped and
 * reported. Queue pairs call the same methods for all schemes; the scheme is chosen when the queue pair is connected.
 *
 * Sender: the requester, for requests and for READ responses it waits for. PSNs in [unacked, next) are outstanding.
 * Receiver: the responder, for requests.
 */

import type { ParametersOf, ParameterTable } from '../core/parameters.js';
import type { NicContext } from './nic-context.js';

/** `onLoss` answer: nothing to rewind, lost packets come out of `nextResend`. */
export const NO_REWIND = -1;

/**
 * `cause` of `onLoss`: a SACK, a gap in READ responses, or an acknowledgement that jumps past an answer: the last PSN
 * of the range has arrived.
 */
export const LOSS_REPORTED = 0;
/** `cause` of `onLoss`: no answer for a whole timeout; earlier conclusions are void. */
export const LOSS_TIMEOUT = 1;
/** `cause` of `onLoss`: a NAK without a bitmap: the receiver buffers nothing after the gap. */
export const LOSS_DROPPED = 2;

/**
 * The sender's half. Where a method has a default, it is that of go-back-N. PSNs are 24-bit numbers that
 * wrap.
 */
export abstract class SenderRecovery {
  /**
   * True for the go-back schemes: a reported loss is a retry of everything after it, counts against retry_cnt, and only
   * one runs at a time. False: reports only add packets to resend, and timeouts alone count.
   */
  abstract readonly goesBack: boolean;
  /**
   * A reported loss names the first PSN of a message, which the receiver has dropped. Part of it may have been
   * acknowledged. Default false.
   */
  readonly restartsMessages: boolean = false;
  /**
   * The scheme infers losses from the packets that have arrived. Default true. False: only a trimmed packet or a
   * timeout reports a loss.
   */
  readonly infersLosses: boolean = true;
  /** Maximum packets in flight that the scheme can account for or allows. 1 to 2^22, the default. */
  readonly inFlightMax: number = 1 << 22;

  /** Starts again: the next PSN to be sent is `psn`. */
  reset(_psn: number): void {}

  /**
   * PSNs in [first, end) are missing: `first` certainly, the others unless they are delivered or SACKed. `messageStart`
   * is the first PSN of the message that holds `first`, `next` the next new PSN. `cause` is LOSS_REPORTED, LOSS_TIMEOUT
   * or LOSS_DROPPED. Returns the PSN at which sending resumes, or NO_REWIND.
   */
  abstract onLoss(first: number, end: number, messageStart: number, next: number, cause: number): number;

  /** The answer with `psn` has been placed although something before it is missing: this PSN is done. */
  markDelivered(_psn: number): void {}

  /**
   * A SACK reports that the receiver has buffered the request `psn` after a gap. It is not done: the receiver may still
   * refuse it when it executes it.
   */
  markSacked(_psn: number): void {}

  /** True when `psn`, not before the oldest that is unacknowledged, was {@link markDelivered}. */
  isDelivered(_psn: number): boolean {
    return false;
  }

  /** Everything before `psn` is done; returns the first PSN from there on that is not. */
  advance(psn: number): number {
    return psn;
  }

  /** A switch has trimmed the newest copy of `psn`, in [unacked, next). Returns true when it is to be retransmitted. */
  onTrimmed(_psn: number): boolean {
    return false;
  }

  /** Packets in flight that are known to have arrived after a gap; a window in bytes excludes them. */
  get arrived(): number {
    return 0;
  }

  /** The next PSN in [unacked, next) to retransmit out of order, or -1. */
  nextResend(_unacked: number, _next: number): number {
    return -1;
  }

  /** `psn` has just been retransmitted; `next` is the next new PSN. */
  onResent(_psn: number, _next: number): void {}

  /**
   * How long to wait for an answer before everything in flight counts as lost, in nanoseconds; Infinity: indefinitely.
   * `ackTimeoutNs` is the queue pair's local ACK timeout, and the default; `inFlight` the packets that are sent and not
   * acknowledged. Called when the timer starts and when it fires: if the result has become longer, the timer continues.
   */
  timeoutNs(ackTimeoutNs: number, _inFlight: number): number {
    return ackTimeoutNs;
  }

  // ---- for schemes that spread packets over several entropies

  /**
   * Data packets contain their entropy, and acknowledgements echo it: the peer must echo (packet/int-trailer.ts).
   * Default false.
   */
  readonly wantsEcho: boolean = false;

  /**
   * The entropy of the data packet that is sent next, from 0 on, below `entropies` of the definition. Called where
   * there are several; `onSent` of that packet follows.
   */
  nextEntropy(_now: number): number {
    return 0;
  }

  /**
   * An acknowledgement echoes the entropy of the newest data packet. `marked`: that packet was marked CE. Follows
   * `onAnswer`. Untrusted: it may be out of range.
   */
  onEcho(_way: number, _isMarked: boolean): void {}

  // ---- for schemes that detect losses by time; not called where `usesTime` is false

  /** The scheme uses the times at which packets are sent and answered. Default false. */
  readonly usesTime: boolean = false;
  /** When {@link detectLosses} is to be called even if no answer comes; Infinity: never. */
  get dueNs(): number {
    return Number.POSITIVE_INFINITY;
  }

  /**
   * PSNs [psn, psn + psns) have just been sent, new or again, at `now` nanoseconds; `next` is the next new PSN after
   * that.
   */
  onSent(_psn: number, _psns: number, _next: number, _now: number): void {}

  /** From `now` on a requested answer is due. */
  onAwaited(_now: number): void {}

  /**
   * An answer has arrived. Calls that follow report its content: `markDelivered`, `markSacked`, `advance`, `onLoss`.
   */
  onAnswer(_now: number): void {}

  /**
   * After each answer, and at {@link dueNs}: decides what is lost in [unacked, next). `awaits`: a requested answer is
   * due. Returns true if there is something to retransmit.
   */
  detectLosses(_unacked: number, _next: number, _awaits: boolean, _now: number): boolean {
    return false;
  }
}

/** Answer of `onAhead`: drop it; report the gap once. */
export const AHEAD_NAK = 0;
/** Answer of `onAhead`: drop it; the message in progress restarts; report its first PSN once. */
export const AHEAD_RESTART_MESSAGE = 1;
/** Answer of `onAhead`: buffered; report the buffered packets. */
export const AHEAD_BUFFERED = 2;
/** Answer of `onAhead`: too far ahead to be buffered; report the buffered packets. */
export const AHEAD_DROPPED = 3;

/**
 * Answer of `onAhead`: it differs from the buffered packet with this PSN; neither stays; report the buffered packets.
 */
export const AHEAD_CONFLICT = 4;

/** `replay` of a receiver: responses from there on are dropped from the queue: the requester requests them again. */
export const REPLAY_REWIND = 0;
/** `replay` of a receiver: only these PSNs are wanted; queued responses stay. */
export const REPLAY_APPEND = 1;

/** The receiver's half. Where a method has a default, it is that of a scheme that buffers nothing after a gap. */
export abstract class ReceiverRecovery {
  /** What happens to queued responses when one is requested again. Default REPLAY_REWIND. */
  readonly replay: typeof REPLAY_REWIND | typeof REPLAY_APPEND = REPLAY_REWIND;
  /**
   * A READ is executed again from any PSN at which it is repeated. Go-back-0 needs this: it restarts messages that are
   * longer than the records reach back, and may repeat several requests as one. Default false.
   */
  readonly restartsReads: boolean = false;

  /**
   * Repeated requests for answers that may wait beyond the original ones, at least 1; more are dropped, and requested
   * again after a timeout. Default 64.
   */
  readonly replaysMax: number = 64;

  /** Gaps are reported, by NAK or SACK. Default true. False: the sender learns otherwise what is lost. */
  readonly reportsGaps: boolean = true;

  /**
   * Discards the buffered packets. From now on an honest peer has at most `windowPackets` packets in flight; packets
   * further ahead are not from it. 0: no peer is connected.
   */
  reset(_windowPackets: number): void {}

  /**
   * A packet `distance` (> 0) ahead of the expected PSN: `length` bytes from `offset`, which are copied if the packet
   * is buffered. Returns one of AHEAD_NAK, AHEAD_RESTART_MESSAGE, AHEAD_BUFFERED, AHEAD_DROPPED, AHEAD_CONFLICT.
   */
  abstract onAhead(psn: number, distance: number, bytes: Uint8Array, offset: number, length: number): number;

  /**
   * True when `psn`, before the expected one, starts the message in progress over. `messageStart` is -1 between
   * messages.
   */
  restartsMessage(_psn: number, _messageStart: number): boolean {
    return false;
  }

  /** A packet with this PSN is buffered. */
  holds(_psn: number): boolean {
    return false;
  }

  /** The buffered packet with this PSN, removed from the store; valid until the next call. */
  takeBuffered(_expected: number): BufferedPacket | undefined {
    return undefined;
  }

  /**
   * A packet before the expected PSN differs from the one with its PSN that was buffered and executed. An honest
   * sender repeats the same bytes.
   */
  isConflictingDuplicate(_psn: number, _bytes: Uint8Array, _offset: number, _length: number): boolean {
    return false;
  }

  /**
   * Bytes of the bitmap that {@link writeBitmap} would write, at most 128: 0 when nothing is buffered, or the scheme
   * has none.
   */
  bitmapBytes(_expected: number): number {
    return 0;
  }

  /** Bit i of the little-endian bitmap: PSN expected + 1 + i is buffered. */
  writeBitmap(_expected: number, _bytes: Uint8Array, _offset: number, _length: number): void {}
}

/** A packet of the receiver's store. */
export interface BufferedPacket {
  /** The packet from its BTH on, and perhaps more. */
  readonly bytes: Uint8Array;
  /** Bytes of the packet. */
  readonly length: number;
}

/**
 * The packets of one direction that a loss rule drops: every K-th (`period`), or each with `probability` p, 0..1.
 */
export type LossModel =
  | {
      /** One packet in this many is lost; retransmissions count as well. */
      readonly kind: 'regular';
      /** K: every K-th packet is lost. */
      readonly period: number;
    }
  | {
      /** Each packet is lost independently. */
      readonly kind: 'random';
      /** p, 0..1. */
      readonly probability: number;
    };

/** A recovery scheme as registered. Both ends of a connection need the same one, by name. */
export interface RecoveryDefinition<N extends string = string, T extends ParameterTable = ParameterTable> {
  /**
   * The name in options, on command lines and in the connection exchange: lower-case letters, digits and hyphens, 1 to
   * 31.
   */
  readonly name: N;
  /** One line for help and tables. */
  readonly summary: string;
  /** The scheme's parameters; those marked `agreed` must have the same values at both ends. */
  readonly parameters: T;
  /**
   * The receiver reports gaps by SACK, a packet with a bitmap, instead of a NAK; others drop that packet. Default
   * false.
   */
  readonly usesSack?: boolean;
  /**
   * UDP source ports that packets of either end leave with and the other accepts, 1 to 256, by its parameters, which
   * have to be `agreed` ones. Default 1.
   */
  entropies?(parameters: ParametersOf<T>): number;
  /**
   * Useful packets / packets sent, 0..1, in closed form, for messages of M = `messagePackets` packets. On average W =
   * `pipelineDepth` packets follow a lost one before the sender learns of the loss. Undefined, or no such method, where
   * there is no closed form.
   */
  efficiency?(loss: LossModel, messagePackets: number, pipelineDepth: number): number | undefined;
  /**
   * Makes the sender's half of one queue pair. May throw ERR_ROCE_CONFLICT for parameters that contradict each other.
   */
  sender(parameters: ParametersOf<T>): SenderRecovery;
  /**
   * Makes the receiver's half of one queue pair. May throw like `sender`. `nic` holds what all queue pairs of a NIC
   * share.
   */
  receiver(parameters: ParametersOf<T>, nic: NicContext): ReceiverRecovery;
}

export function defineRecovery<const N extends string, const T extends ParameterTable>(
  definition: RecoveryDefinition<N, T>,
): RecoveryDefinition<N, T> {
  return definition;
}

/**
 * Recovery schemes that programs register, by name, with the types of their tables. Empty here; a program adds to it by
 * module augmentation, and the option types of the package follow.
 */
export interface RegisteredRecoveries extends Record<never, never> {}
