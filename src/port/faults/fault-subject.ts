import { readU24 } from '../../core/bytes.js';
import { bthOffset, isEmptyPsp, PSP_OVERHEAD_BYTES } from '../../packet/psp.js';
import { BTH_BYTES, ICRC_BYTES } from '../../packet/roce.js';

/** Reused by its owner for every packet. */
export interface FaultSubject {
  /** Where the packet comes from and goes to: switch port names, or `host` and `wire` on a single port. */
  ingress: string;
  /** Where the packet goes to, named as `ingress`. */
  egress: string;
  /** IPv4 identification, or -1 where there is none. */
  ipId: number;
  /** Of the BTH, 0..255. */
  opcode: number;
  /** Of the BTH, 24 bits. */
  psn: number;
  /** Of the BTH, 24 bits: the receiving queue pair. */
  destQpn: number;
  /** Bytes from BTH to ICRC, without what protects them. */
  bytes: number;
}

export function newFaultSubject(): FaultSubject {
  return { ingress: '', egress: '', ipId: -1, opcode: 0, psn: 0, destQpn: 0, bytes: 0 };
}

/**
 * Reads the BTH of the UDP payload at `offset` into the subject, also that of a protected packet, where it is in the
 * clear.
 */
export function readBth(subject: FaultSubject, bytes: Uint8Array, offset: number, length: number): boolean {
  if (length < BTH_BYTES + ICRC_BYTES || isEmptyPsp(bytes, offset, length)) return false;
  const inner = bthOffset(bytes, offset, length);
  const bth = offset + inner;
  subject.opcode = bytes[bth];
  subject.destQpn = readU24(bytes, bth + 5);
  subject.psn = readU24(bytes, bth + 9);
  subject.bytes = inner === 0 ? length : length - PSP_OVERHEAD_BYTES;
  return true;
}
