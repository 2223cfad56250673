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

export function ping(at: number, details: Details = {}): Step {
  return send(RC_WRITE_ONLY, at, details);
}

export function write(at: number, bytes: number, details: Details = {}): Step {
  return send(RC_WRITE_ONLY, at, { bytes, ...details });
}

export function writeFirst(at: number, bytes: number, length: number, details: Details = {}): Step {
  return send(RC_WRITE_FIRST, at, { bytes, length, ackReq: false, ...details });
}

export function writeMiddle(at: number, bytes: number, details: Details = {}): Step {
  return send(RC_WRITE_MIDDLE, at, { bytes, ...details });
}

export function writeLast(at: number, bytes: number, details: Details = {}): Step {
  return send(RC_WRITE_LAST, at, { bytes, ...details });
}

export function message(at: number, bytes: number, details: Details = {}): Step {
  return send(RC_SEND_ONLY, at, { bytes, ...details });
}

export function read(at: number, length: number, details: Details = {}): Step {
  return send(RC_READ_REQUEST, at, { length, ...details });
}

export function add(at: number, operand: bigint, details: Details = {}): Step {
  return send(RC_FETCH_ADD, at, { operand, ...details });
}

export function swap(at: number, compare: bigint, operand: bigint): Step {
  return send(RC_COMPARE_SWAP, at, { operand, compare });
}

export function clear(at: number): Step {
  return send(RC_WRITE_ONLY, at, { bytes: ATOMIC_BYTES, seed: ZEROS });
}
