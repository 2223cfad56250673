import { OPCODES, opcodeName } from 'rocev2/internal/packet';

/** Files may be of any size; a page that can be read has no more packets than these. */
export const ENTRIES_MAX = 20_000;

export interface LadderEntry {
  /** Of all packets, or events, of the file; from 1. */
  readonly number: number;
  readonly timeNs: number;
  readonly source: string;
  readonly destination: string;
  readonly interfaceId: number;
  readonly destQpn: number;
  /** Known of datagrams only. */
  readonly sourceQpn: number | undefined;
  readonly opcode: number;
  /** Of the BTH, 24 bits. */
  readonly psn: number;
  readonly answer: { readonly kind: 'ack' | 'nak' | 'rnr_nak' | 'reserved'; readonly meaning: string } | undefined;
  readonly readBytes: number;
  readonly isRepeated: boolean;
  readonly missing: number;
  readonly isLost: boolean;
  readonly notes: readonly string[];
}

export interface LadderEntries {
  readonly packets: readonly LadderEntry[];
  readonly remarks: readonly string[];
}

const CODES = new Map(Array.from({ length: 256 }, (_, opcode) => [opcodeName(opcode), opcode] as const));

export function opcodeOf(name: string): number | undefined {
  const opcode = CODES.get(name);
  return opcode === undefined || OPCODES[opcode] === undefined ? undefined : opcode;
}
