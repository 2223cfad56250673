/**
 * Control messages of the memory-pool protocols: SENDs of one fixed layout, big-endian.
 *
 *     0 type   1..3 zero   4 version   8 id   12 count   16 bytes   20 rkey   24 address (8)
 *
 * The type decides which fields are used; the others are zero. The receiver drops and counts messages that it cannot
 * parse.
 */

import { readU24 } from '../core/bytes.js';

/** Types in the order of their numbers on the wire, from 1. */
export const MESSAGE_TYPES = [
  /**
   * Owner of the memory: the blocks `id .. id + count - 1` of `bytes` each begin at `address`; the pool has this
   * `version` now.
   */
  'POOL',
  'ACK_ID',
  'ACK_COUNT',
  'GROW',
  'GROW_REFUSED',
  /** Read pool: block `id` holds `bytes` bytes to read; 0 bytes: end of the data. */
  'GRANT',
  'ALLOC',
  /** Alloc-per-write: write at most `bytes` to `address`; the id of the block is `id`. */
  'ALLOCATED',
] as const;
export type MessageType = (typeof MESSAGE_TYPES)[number];

/** A control message; fields that its type does not use are 0. */
export interface ControlMessage {
  /** Type of the message; see the list of types. */
  readonly type: MessageType;
  /** Version of the pool, from 1. */
  readonly version: number;
  /** A block, or the first of several. */
  readonly id: number;
  /** Number of blocks. */
  readonly count: number;
  /** Bytes of a block, or in it. */
  readonly bytes: number;
  /** Key of the memory described. */
  readonly rkey: number;
  /** Virtual address of the memory described. */
  readonly address: bigint;
}

export const MESSAGE_BYTES = 32;
const BLANK = { version: 0, id: 0, count: 0, bytes: 0, rkey: 0, address: 0n };

export function encodeMessage(message: { readonly type: MessageType } & Partial<ControlMessage>): Uint8Array {
  const fields = { ...BLANK, ...message };
  const out = new Uint8Array(MESSAGE_BYTES);
  const view = new DataView(out.buffer);
  view.setUint8(0, MESSAGE_TYPES.indexOf(fields.type) + 1);
  view.setUint32(4, fields.version);
  view.setUint32(8, fields.id);
  view.setUint32(12, fields.count);
  view.setUint32(16, fields.bytes);
  view.setUint32(20, fields.rkey);
  view.setBigUint64(24, fields.address);
  return out;
}

export function decodeMessage(bytes: Uint8Array): ControlMessage | undefined {
  if (bytes.length !== MESSAGE_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const type = MESSAGE_TYPES[view.getUint8(0) - 1];
  if (type === undefined || readU24(bytes, 1) !== 0) return undefined;
  return {
    type,
    version: view.getUint32(4),
    id: view.getUint32(8),
    count: view.getUint32(12),
    bytes: view.getUint32(16),
    rkey: view.getUint32(20),
    address: view.getBigUint64(24),
  };
}
