/** A packet as a capture or a trace has it: what ladders are made from. */

import { OPCODES, opcodeName } from 'rocev2/internal/packet';

/** Files may be of any size; a page that can be read has no more packets than these. */
export const SIGHTINGS_MAX = 20_000;

/** One packet that was seen. */
export interface Sighting {
  /** Of all packets, or events, of the file; from 1. */
  readonly number: number;
  /** Since the first packet. */
  readonly timeNs: number;
  /** Who sent it, for people: an address. */
  readonly source: string;
  /** Who was to receive it. */
  readonly destination: string;
  /** A capture at both ends of a wire has every packet twice, once an interface. */
  readonly interfaceId: number;
  /** The receiving queue pair. */
  readonly destQpn: number;
  /** Known of datagrams only. */
  readonly sourceQpn: number | undefined;
  /** Of the BTH. */
  readonly opcode: number;
  /** Of the BTH, 24 bits. */
  readonly psn: number;
  /** What the AETH says; undefined without one. */
  readonly answer: { readonly kind: 'ack' | 'nak' | 'rnr_nak' | 'reserved'; readonly meaning: string } | undefined;
  /** Bytes that a READ asks for; 0 where it is not known, and of other packets. */
  readonly readBytes: number;
  /** Its PSN had been sent before. */
  readonly isRepeated: boolean;
  /** PSNs that should have come before it. */
  readonly missing: number;
  /** It ended where it was seen. */
  readonly isLost: boolean;
  /** What else there is to say. */
  readonly notes: readonly string[];
}

/** What was read from a file. */
export interface Sightings {
  /** In order of time, at most {@link SIGHTINGS_MAX}. */
  readonly packets: readonly Sighting[];
  /** What is not among them, and why. */
  readonly remarks: readonly string[];
}

const CODES = new Map(Array.from({ length: 256 }, (_, opcode) => [opcodeName(opcode), opcode] as const));

/** The opcode of a name of the opcode table: of a trace. Undefined for names that are not in it. */
export function opcodeOf(name: string): number | undefined {
  const opcode = CODES.get(name);
  return opcode === undefined || OPCODES[opcode] === undefined ? undefined : opcode;
}
