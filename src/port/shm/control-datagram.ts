/**
 * Datagrams between ports of one host other than packets. A ring offer names the memory to which the sender writes its
 * packets from now on. A doorbell wakes a sleeping port. A refusal reports a lack of space for a further ring.
 * Their first byte is not an opcode of any transport, so that other peers drop them.
 *
 *     bytes 0..7: ff "rocev2" and the kind; a ring offer also has PID, descriptor and nonce, 32 bits, big-endian
 */

const MARK = Uint8Array.of(0xff, 0x72, 0x6f, 0x63, 0x65, 0x76, 0x32);
const KIND_OFFSET = MARK.length;
const KIND_DOORBELL = 1;
const KIND_RING_OFFER = 2;
const KIND_REFUSAL = 3;
export const DOORBELL_BYTES = KIND_OFFSET + 1;
/** A ring offer also names the memory: three numbers of 32 bits. */
export const RING_OFFER_BYTES = DOORBELL_BYTES + 12;

export interface RingOffer {
  readonly pid: number;
  readonly fd: number;
  /** 32 bits that are also in the ring. */
  readonly nonce: number;
}

export function writeDoorbell(bytes: Uint8Array, offset: number): void {
  bytes.set(MARK, offset);
  bytes[offset + KIND_OFFSET] = KIND_DOORBELL;
}

export function writeRefusal(bytes: Uint8Array, offset: number): void {
  writeDoorbell(bytes, offset);
  bytes[offset + KIND_OFFSET] = KIND_REFUSAL;
}

/** Writes a ring offer. */
export function writeRingOffer(bytes: Uint8Array, offset: number, { pid, fd, nonce }: RingOffer): void {
  bytes.set(MARK, offset);
  bytes[offset + KIND_OFFSET] = KIND_RING_OFFER;
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset + DOORBELL_BYTES);
  view.setUint32(0, pid);
  view.setUint32(4, fd);
  view.setUint32(8, nonce >>> 0);
}

/** The content of a datagram: a ring offer, `doorbell` or `refusal`. Undefined: it is a packet. */
export function readControlDatagram(
  bytes: Uint8Array,
  offset: number,
  length: number,
): RingOffer | 'doorbell' | 'refusal' | undefined {
  if (bytes[offset] !== MARK[0] || length < DOORBELL_BYTES) return undefined;
  for (let i = 1; i < MARK.length; i++) if (bytes[offset + i] !== MARK[i]) return undefined;
  const kind = bytes[offset + KIND_OFFSET];
  if (kind === KIND_DOORBELL && length === DOORBELL_BYTES) return 'doorbell';
  if (kind === KIND_REFUSAL && length === DOORBELL_BYTES) return 'refusal';
  if (kind !== KIND_RING_OFFER || length !== RING_OFFER_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset + DOORBELL_BYTES);
  return { pid: view.getUint32(0), fd: view.getUint32(4), nonce: view.getUint32(8) | 0 };
}
