/**
 * Private data of RDMA CM messages between host and target (NVMe over RDMA transport specification 1.0 §3.2),
 * little-endian.
 */

export const PRIVATE_DATA_BYTES = 32;

export const REJECT_STATUS = {
  INVALID_LENGTH: 1,
  INVALID_FORMAT: 2,
  INVALID_QID: 3,
  INVALID_SEND_QUEUE: 4,
  INVALID_RECEIVE_QUEUE: 5,
  NO_RESOURCES: 6,
  INVALID_ORD: 8,
} as const;

export interface QueueRequest {
  readonly qid: number;
  readonly receives: number;
  readonly sends: number;
}

/** A number is the status to reject with. */
export function readQueueRequest(data: Uint8Array): QueueRequest | number {
  if (data.length < PRIVATE_DATA_BYTES) return REJECT_STATUS.INVALID_LENGTH;
  const view = Buffer.from(data.buffer, data.byteOffset, data.length);
  if (view.readUInt16LE(0) !== 0) return REJECT_STATUS.INVALID_FORMAT;
  return { qid: view.readUInt16LE(2), receives: view.readUInt16LE(4), sends: view.readUInt16LE(6) + 1 };
}

export function encodeQueueRequest({ qid, receives, sends }: QueueRequest): Buffer {
  const bytes = Buffer.alloc(PRIVATE_DATA_BYTES);
  bytes.writeUInt16LE(qid, 2);
  bytes.writeUInt16LE(receives, 4);
  bytes.writeUInt16LE(sends - 1, 6);
  return bytes;
}

export function encodeQueueAcceptance(receives: number): Buffer {
  const bytes = Buffer.alloc(PRIVATE_DATA_BYTES);
  bytes.writeUInt16LE(receives, 2);
  return bytes;
}

export function encodeQueueRejection(status: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt16LE(status, 2);
  return bytes;
}

export function rejectionText(data: Uint8Array): string | undefined {
  const status = data.length >= 4 ? data[2] | (data[3] << 8) : 0;
  const name = Object.entries(REJECT_STATUS).find(([, value]) => value === status)?.[0];
  return name?.toLowerCase().replaceAll('_', ' ');
}
