/**
 * The contract of a rate control: how fast one flow (a queue pair as data sender) may send, and how much of it may be
 * in flight. Queue pairs call the same methods for all schemes; the scheme is chosen when the queue pair is connected.
 *
 * A rate is a function of time: timers run lazily, each call first advances them to `now`, so that 55 us timers are
 * right even where the event loop is coarse. `now` is in nanoseconds and never runs backwards. Rates are in bits/s of
 * the link: Ethernet with preamble and gap, IP and UDP count.
 */

import type { ParametersOf, ParameterTable } from '../core/parameters.js';
import { INT_NONE, type IntEcho } from '../packet/int-trailer.js';

/** Information from one acknowledgement. The record is reused: a scheme must copy what it keeps. */
export interface Acknowledgement {
  /**
   * Bytes that are newly acknowledged, in whole packets of the path MTU: the last packet of a message counts as a whole
   * one.
   */
  bytes: number;
  /**
   * From sending the newest packet that it acknowledges until now, ns; NaN if that packet was not measured (see
   * `rttSampleBytes`). With `intKind` it comes from the time stamp that the peer echoes, so that retransmitted packets
   * also count.
   */
  rttNs: number;
  /** Congestion notifications that have arrived since the last acknowledgement. */
  marks: number;
  /**
   * Where {@link RateControl.intKind} asks for echoes: data packets that have arrived at the peer since the last
   * acknowledgement.
   */
  receivedPackets: number;
  /** Of these, packets that switches have marked CE. */
  markedPackets: number;
  /**
   * The newest echo since the last acknowledgement, if there is one: time between arrival and echo, records of switches
   * or their digest. Reused like this record.
   */
  echo: Readonly<IntEcho> | undefined;
}

/**
 * A rate control. Every method has a default, that of a scheme without limits; a scheme overrides those that it needs.
 */
export abstract class RateControl {
  /** Data packets leave as ECT(0): the scheme listens to ECN marks. Default false. */
  readonly usesEcn: boolean = false;
  /**
   * Bytes between packets whose round trip is measured; Infinity, the default, if the scheme does not use it. 1: every
   * packet; 0: one packet in a round trip, the first that leaves after the last measured one was acknowledged.
   */
  readonly rttSampleBytes: number = Number.POSITIVE_INFINITY;
  /**
   * The scheme limits the bytes in flight by {@link windowBytes}. Every packet then asks for an acknowledgement,
   * because these open the window. Default false.
   */
  readonly usesWindow: boolean = false;
  /**
   * What data packets request. INT_NONE (default): nothing. INT_DATA_TIMES: the echo of their time stamps and marks.
   * INT_DATA_HOPS: also records of switches. INT_DATA_DIGEST: also the digest of PINT. INT_DATA_CREDIT: times and
   * credit. Only a peer that echoes accepts such packets (packet/int-trailer.ts).
   */
  readonly intKind: number = INT_NONE;

  /**
   * As receiver: grants credit to the senders of the NIC at this rate, bits/s of the link; 0, the default: credit is
   * granted immediately.
   */
  readonly creditRateBps: number = 0;
  /**
   * As receiver: the credit, in nanoseconds of that rate, that may be out before it comes back as data: a round trip.
   * Default 0.
   */
  readonly creditLeadNs: number = 0;
  /** As receiver: credit of one sender that has not come back as data, bytes of whole packets. Default 16 MiB. */
  readonly creditMaximumBytes: number = 1 << 24;

  /**
   * The current rate; Infinity, the default: not limited. Never below the scheme's minimum, never above the line rate.
   */
  rateBps(_now: number): number {
    return Number.POSITIVE_INFINITY;
  }

  /** The rate that recovery is heading for; by default the current rate. */
  targetRateBps(now: number): number {
    return this.rateBps(now);
  }

  /**
   * Bytes that may be in flight, read if {@link usesWindow}; Infinity, the default: not limited. The queue pair counts
   * requests, and the READ responses they ask for, in whole packets of the path MTU, and always allows one packet. It
   * reads the window again at each acknowledgement.
   */
  windowBytes(_now: number): number {
    return Number.POSITIVE_INFINITY;
  }

  /**
   * The estimate of congestion, 0..1, of schemes in the manner of DCQCN; NaN, the default, where the scheme has none.
   */
  alpha(_now: number): number {
    return Number.NaN;
  }

  /** A data packet of that many bytes on the link has left. Not called for schemes that are not paced. */
  onSent(_wireBytes: number, _now: number): void {}

  /**
   * A congestion notification arrived. False, the default, when it changed nothing: too soon after the last one, or not
   * this scheme's signal.
   */
  onCnp(_now: number): boolean {
    return false;
  }

  /**
   * A round trip was measured: from sending a packet to its acknowledgement. Comes before {@link onAck} of the same
   * acknowledgement.
   */
  onRttSample(_rttNs: number, _now: number): void {}

  /**
   * An echo, if {@link intKind} requests one: `packets` more have arrived at the peer, in order or not; the newest took
   * `rttNs` there and back. Comes with each echo, also while a gap keeps {@link onAck} from being called. `echo` is
   * reused.
   */
  onEcho(_packets: number, _rttNs: number, _echo: Readonly<IntEcho>, _now: number): void {}

  /** A switch has trimmed a packet of `bytes`, in whole packets of the path MTU. */
  onTrimmed(_bytes: number, _now: number): void {}

  /** An acknowledgement, or a READ response, has moved the oldest packet in flight. */
  onAck(_ack: Readonly<Acknowledgement>, _now: number): void {}
}

/** A rate control as registered. */
export interface RateControlDefinition<N extends string = string, T extends ParameterTable = ParameterTable> {
  /** The name in options and on command lines: lower-case letters, digits and hyphens, 1 to 31. */
  readonly name: N;
  /** One line for help and tables. */
  readonly summary: string;
  /** The scheme's own parameters. `cnpIntervalNs` and, if it is paced, `burstBytes` are added. */
  readonly parameters: T;
  /** False: it has no rate, its packets leave when they can. Default true. */
  readonly isPaced?: boolean;
  /** Makes the control of one flow. May throw ERR_ROCE_CONFLICT for parameters that contradict each other. */
  create(parameters: ParametersOf<T>): RateControl;
}

export function defineRateControl<const N extends string, const T extends ParameterTable, const P extends boolean>(
  definition: RateControlDefinition<N, T> & { readonly isPaced?: P },
): RateControlDefinition<N, T> & { readonly isPaced?: P } {
  return definition;
}

/**
 * Rate controls that programs register, by name, with the types of their tables. Empty here; a program adds to it by
 * module augmentation, and the option types of the package follow.
 */
export interface RegisteredRateControls extends Record<never, never> {}
