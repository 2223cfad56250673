/** Whether two request packets with one PSN are copies of each other: a requester retransmits the same request. */

import { readU32 } from '../core/bytes.js';
import { RC_READ_REQUEST } from './opcode.js';
import { BTH_BYTES, ICRC_BYTES } from './roce.js';

/** Congestion bits: switches may set them. */
const BTH_CONGESTION_BYTE = 4;
/** AckReq: a retransmission may set it where the first copy did not. */
const BTH_ACK_REQ_BYTE = 8;
const READ_LENGTH_OFFSET = BTH_BYTES + 12;
const READ_LENGTH_BYTES = 4;

/**
 * True when the packets at `offset` of `one` and at `otherOffset` of `other`, from BTH to ICRC `length` bytes long, are
 * the same request. Congestion bits, AckReq and the ICRC may differ, and so may the length of a READ: if a part of its
 * answers was lost, only that part is requested again.
 */
export function isSameRequest(
  one: Uint8Array,
  offset: number,
  other: Uint8Array,
  otherOffset: number,
  length: number,
): boolean {
  const isRead = one[offset] === RC_READ_REQUEST;
  for (let i = 0; i < length - ICRC_BYTES; i++) {
    if (one[offset + i] === other[otherOffset + i]) continue;
    if (i === BTH_CONGESTION_BYTE || i === BTH_ACK_REQ_BYTE) continue;
    if (isRead && i >= READ_LENGTH_OFFSET && i < READ_LENGTH_OFFSET + READ_LENGTH_BYTES) continue;
    return false;
  }
  return true;
}

/** True when the packets at these offsets are READ requests and the first is shorter than the second. */
export function asksForLess(one: Uint8Array, offset: number, other: Uint8Array, otherOffset: number): boolean {
  if (one[offset] !== RC_READ_REQUEST || other[otherOffset] !== RC_READ_REQUEST) return false;
  return readU32(one, offset + READ_LENGTH_OFFSET) < readU32(other, otherOffset + READ_LENGTH_OFFSET);
}
