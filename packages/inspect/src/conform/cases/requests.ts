/** The requests that cases are made of. */

import {
  ATOMIC_BYTES,
  RC_COMPARE_SWAP,
  RC_FETCH_ADD,
  RC_READ_REQUEST,
  RC_SEND_ONLY,
  RC_WRITE_FIRST,
  RC_WRITE_LAST,
  RC_WRITE_MIDDLE,
  RC_WRITE_ONLY,
} from 'rocev2/internal/packet';
import { type RequestPacket, type Step, send, ZEROS } from '../step.js';

type Details = Omit<RequestPacket, 'opcode' | 'at' | 'bytes'>;

/** A WRITE of no bytes, which needs nothing of the target but a queue pair. */
export function ping(at: number, details: Details = {}): Step {
  return send(RC_WRITE_ONLY, at, details);
}

/** A WRITE in one packet. */
export function write(at: number, bytes: number, details: Details = {}): Step {
  return send(RC_WRITE_ONLY, at, { bytes, ...details });
}

/** The first packet of a WRITE of `length` bytes; it asks for no acknowledgement. */
export function writeFirst(at: number, bytes: number, length: number, details: Details = {}): Step {
  return send(RC_WRITE_FIRST, at, { bytes, length, ackReq: false, ...details });
}

/** A middle packet of a WRITE. */
export function writeMiddle(at: number, bytes: number, details: Details = {}): Step {
  return send(RC_WRITE_MIDDLE, at, { bytes, ...details });
}

/** The last packet of a WRITE. */
export function writeLast(at: number, bytes: number, details: Details = {}): Step {
  return send(RC_WRITE_LAST, at, { bytes, ...details });
}

/** A SEND in one packet. */
export function message(at: number, bytes: number, details: Details = {}): Step {
  return send(RC_SEND_ONLY, at, { bytes, ...details });
}

/** A READ of `length` bytes. */
export function read(at: number, length: number, details: Details = {}): Step {
  return send(RC_READ_REQUEST, at, { length, ...details });
}

/** Adds to the 64 bits at `place`. */
export function add(at: number, operand: bigint, details: Details = {}): Step {
  return send(RC_FETCH_ADD, at, { operand, ...details });
}

/** Swaps the 64 bits at `place` if they equal `compare`. */
export function swap(at: number, compare: bigint, operand: bigint): Step {
  return send(RC_COMPARE_SWAP, at, { operand, compare });
}

/** Sets the 64 bits at the start of the memory to 0. */
export function clear(at: number): Step {
  return send(RC_WRITE_ONLY, at, { bytes: ATOMIC_BYTES, seed: ZEROS });
}
