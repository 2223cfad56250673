/**
 * What a target announces when it accepts a connection: the private data of its REP. All numbers are big-endian.
 *
 *     0  8  "rocev2cf"
 *     8  1  version, 1
 *     9  1  RNR timer code of its queue pairs
 *    10  2  receives that are posted for each connection, and never again
 *    12  4  bytes of one receive
 *    16 16  open memory: address (8), key (4), bytes (4); every remote right
 *    32 12  memory that can only be read: address (8), key (4)
 *    44 12  memory of another protection domain: address (8), key (4)
 *    56 12  a window of this connection on the open memory, which a SEND can invalidate: address (8), key (4);
 *        older targets end before it
 *    68  1  1: the open memory may be flushed, and takes ATOMIC WRITEs; older targets end before it
 */

const MAGIC = Uint8Array.of(0x72, 0x6f, 0x63, 0x65, 0x76, 0x32, 0x63, 0x66);
export const OFFER_VERSION = 1;
const OFFER_BYTES_MIN = 56;
const OFFER_WITH_WINDOW_BYTES = 68;
const OFFER_BYTES = 69;

export interface OfferedMemory {
  readonly address: bigint;
  readonly key: number;
}

export interface Offer {
  /** RNR timer code of its queue pairs, 0..31. */
  readonly minRnrTimer: number;
  readonly receives: number;
  readonly receiveBytes: number;
  readonly open: OfferedMemory & {
    readonly bytes: number;
  };
  readonly readOnly: OfferedMemory;
  readonly foreign: OfferedMemory;
  readonly window?: OfferedMemory;
  /** The open memory may be flushed, and takes ATOMIC WRITEs. */
  readonly flushes?: boolean;
  readonly isWriteOnly?: boolean;
}

export function putMagic(data: Uint8Array): void {
  data.set(MAGIC);
  data[8] = OFFER_VERSION;
}

export function hasMagic(data: Uint8Array): boolean {
  return MAGIC.every((byte, i) => data[i] === byte);
}

export function encodeOffer({
  minRnrTimer,
  receives,
  receiveBytes,
  open,
  readOnly,
  foreign,
  window,
  flushes,
}: Offer): Uint8Array {
  const data = new Uint8Array(window === undefined ? OFFER_BYTES_MIN : OFFER_BYTES);
  const view = new DataView(data.buffer);
  putMagic(data);
  data[9] = minRnrTimer;
  view.setUint16(10, receives);
  view.setUint32(12, receiveBytes);
  view.setBigUint64(16, open.address);
  view.setUint32(24, open.key);
  view.setUint32(28, open.bytes);
  view.setBigUint64(32, readOnly.address);
  view.setUint32(40, readOnly.key);
  view.setBigUint64(44, foreign.address);
  view.setUint32(52, foreign.key);
  if (window !== undefined) {
    view.setBigUint64(56, window.address);
    view.setUint32(64, window.key);
    data[68] = flushes === true ? 1 : 0;
  }
  return data;
}

export function parseOffer(data: Uint8Array): Offer | undefined {
  if (data.length < OFFER_BYTES_MIN || !hasMagic(data) || data[8] !== OFFER_VERSION) return undefined;
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  return {
    minRnrTimer: data[9] & 0x1f,
    receives: view.getUint16(10),
    receiveBytes: view.getUint32(12),
    open: { address: view.getBigUint64(16), key: view.getUint32(24), bytes: view.getUint32(28) },
    readOnly: { address: view.getBigUint64(32), key: view.getUint32(40) },
    foreign: { address: view.getBigUint64(44), key: view.getUint32(52) },
    ...(data.length >= OFFER_WITH_WINDOW_BYTES && {
      window: { address: view.getBigUint64(56), key: view.getUint32(64) },
    }),
    flushes: data.length >= OFFER_BYTES && data[68] === 1,
  };
}
