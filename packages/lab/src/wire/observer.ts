import { Audit, type AuditReport, type Finding, type MeasureName } from '@rocev2/inspect';
import { type CapturedPacket, LINKTYPE_ETHERNET, type PacketSink } from 'rocev2/internal/capture';

export type Observation =
  | { readonly kind: 'finding'; readonly finding: Finding }
  | {
      readonly kind: 'measure';
      readonly name: MeasureName;
      readonly value: number;
      readonly flow: string;
    }
  | { readonly kind: 'choice'; readonly rule: number; readonly choice: string; readonly flow: string };

export type OnObservation = (observation: Observation, packet: number, side: number) => void;

/** Events that get a separate line; other measures matter only in total. */
const TOLD: ReadonlySet<MeasureName> = new Set([
  'NAK generation',
  'NAK reaction',
  'retransmission',
  'transport timeout',
]);

export interface ObserverOptions {
  readonly capture?: PacketSink | undefined;
  readonly onObservation?: OnObservation | undefined;
  readonly wallClockNs: () => bigint;
}

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

  take(side: number, bytes: Uint8Array, offset: number, length: number): void {
    const frame = bytes.subarray(offset, offset + length);
    const timestampNs = this.#wallClockNs();
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

  report(): AuditReport | undefined {
    return this.#audit?.report();
  }
}
