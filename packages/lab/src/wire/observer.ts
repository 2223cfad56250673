/** What is seen of the frames on a wire: a capture of both sides, and the audit of that capture while it grows. */

import { Audit, type AuditReport, type Finding, type MeasureName } from '@rocev2/inspect';
import { type CapturedPacket, LINKTYPE_ETHERNET, type PacketSink } from 'rocev2/internal/capture';

/** Something that the audit has seen just now. */
export type Observation =
  | { readonly kind: 'finding'; readonly finding: Finding }
  | {
      readonly kind: 'measure';
      readonly name: MeasureName;
      /** Nanoseconds. */
      readonly value: number;
      readonly flow: string;
    }
  /** A peer chose for the first time, where a rule leaves a choice. */
  | { readonly kind: 'choice'; readonly rule: number; readonly choice: string; readonly flow: string };

/** Called with the number of the packet, from 1, and the index of the side at which it was seen. */
export type OnObservation = (observation: Observation, packet: number, side: number) => void;

/** What happens when packets are lost and sent again; other measures are only of interest in sum. */
const TOLD: ReadonlySet<MeasureName> = new Set([
  'NAK generation',
  'NAK reaction',
  'retransmission',
  'transport timeout',
]);

/** What an {@link Observer} is made of. */
export interface ObserverOptions {
  /** Writes all frames here, sides as interfaces. */
  readonly capture?: PacketSink | undefined;
  /** Audits; it is told of everything at once. */
  readonly onObservation?: OnObservation | undefined;
  /** The time of day in nanoseconds since 1970. */
  readonly wallClockNs: () => bigint;
}

/** Takes all frames in the order in which they come and go; packet numbers are those of the capture. */
export class Observer {
  readonly #capture: PacketSink | undefined;
  readonly #audit: Audit | undefined;
  readonly #onObservation: OnObservation;
  readonly #wallClockNs: () => bigint;
  #packets = 0;
  #side = 0;
  #told = 0;

  constructor({ capture, onObservation, wallClockNs }: ObserverOptions) {
    this.#capture = capture;
    this.#wallClockNs = wallClockNs;
    this.#onObservation = onObservation ?? (() => {});
    if (onObservation === undefined) return;
    const tell = (observation: Observation) => onObservation(observation, this.#packets, this.#side);
    this.#audit = new Audit({
      fitsRates: true,
      listener: {
        measured: (name, value, flow) => {
          if (TOLD.has(name)) tell({ kind: 'measure', name, value, flow });
        },
        chosen: (rule, choice, flow) => tell({ kind: 'choice', rule, choice, flow }),
      },
    });
  }

  /** A frame comes or goes at a side. */
  take(side: number, bytes: Uint8Array, offset: number, length: number): void {
    const frame = bytes.subarray(offset, offset + length);
    const timestampNs = this.#wallClockNs();
    // What the file has no room for has no number.
    if (this.#capture?.writePacket(side, timestampNs, frame) === false) return;
    this.#packets++;
    this.#side = side;
    const audit = this.#audit;
    if (audit === undefined) return;
    const captured: CapturedPacket = {
      timestampNs,
      interfaceId: side,
      linkType: LINKTYPE_ETHERNET,
      bytes: frame,
      originalLength: length,
      comment: undefined,
    };
    audit.take(captured);
    const { findings } = audit;
    for (; this.#told < findings.length; this.#told++) {
      this.#onObservation({ kind: 'finding', finding: findings[this.#told] }, this.#packets, side);
    }
  }

  /** What the audit has found; undefined without one. */
  report(): AuditReport | undefined {
    return this.#audit?.report();
  }
}
