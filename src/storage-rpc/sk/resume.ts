/**
 * Bodies of RESUME, the first exchange on a connection: the client names its session and the epoch of this connection, the server says what
 * it is and whether it knows the session. Little-endian.
 *
 *     request    0 session id 16   16 epoch 4   20 largest inline write 4
 *     response   0 bootId 8   8 disk size 8   16 block size 4   20 largest I/O 4   24 slots 2   26 resumed 1   27 zero 1   28 largest inline write 4
 *                32 storeId 8
 */

import { SK_INLINE_BYTES_MAX, SK_IO_BYTES_MAX, SK_SLOTS_MAX } from './request.js';

/** What the client says first. */
export interface ResumeRequest {
  /** 128 random bits, made by the client. */
  readonly sessionId: Uint8Array;
  /** One more with every connection the session tries. */
  readonly epoch: number;
  /** Writes up to here the client would like to send with the request; 0: none. */
  readonly inlineWriteBytesMax: number;
}

/** What the server answers. */
export interface ResumeResponse {
  /** Another number means another life of the server: what it had not answered may or may not have happened. */
  readonly bootId: bigint;
  /** Of the disk. */
  readonly sizeBytes: number;
  /** Unit of offsets and lengths. */
  readonly blockBytes: number;
  /** Longest READ or WRITE in one request. */
  readonly ioBytesMax: number;
  /** Requests the session may have outstanding. */
  readonly slots: number;
  /** The server knew the session; otherwise its slots start anew. */
  readonly resumed: boolean;
  /** Writes up to here may come with the request: the smaller of both sides' limits. */
  readonly inlineWriteBytesMax: number;
  /** Another number means another life of the store: what had not been flushed may be gone. */
  readonly storeId: bigint;
}

const SESSION_ID_BYTES = 16;
const REQUEST_BODY_BYTES = 24;
const RESPONSE_BODY_BYTES = 40;

/** The 24 bytes of the body. */
export function encodeResumeRequest(request: ResumeRequest): Buffer {
  const out = Buffer.alloc(REQUEST_BODY_BYTES);
  out.set(request.sessionId, 0);
  out.writeUInt32LE(request.epoch, 16);
  out.writeUInt32LE(request.inlineWriteBytesMax, 20);
  return out;
}

/** Undefined when the body has another length. */
export function decodeResumeRequest(body: Uint8Array): ResumeRequest | undefined {
  if (body.length !== REQUEST_BODY_BYTES) return undefined;
  const bytes = Buffer.from(body);
  return {
    sessionId: bytes.subarray(0, SESSION_ID_BYTES),
    epoch: bytes.readUInt32LE(16),
    inlineWriteBytesMax: bytes.readUInt32LE(20),
  };
}

/** The 40 bytes of the body. */
export function encodeResumeResponse(response: ResumeResponse): Buffer {
  const out = Buffer.alloc(RESPONSE_BODY_BYTES);
  out.writeBigUInt64LE(response.bootId, 0);
  out.writeBigUInt64LE(BigInt(response.sizeBytes), 8);
  out.writeUInt32LE(response.blockBytes, 16);
  out.writeUInt32LE(response.ioBytesMax, 20);
  out.writeUInt16LE(response.slots, 24);
  out[26] = response.resumed ? 1 : 0;
  out.writeUInt32LE(response.inlineWriteBytesMax, 28);
  out.writeBigUInt64LE(response.storeId, 32);
  return out;
}

/** Undefined when the body cannot be what a server says: requests are cut and placed by these numbers. */
export function decodeResumeResponse(body: Uint8Array): ResumeResponse | undefined {
  if (body.length !== RESPONSE_BODY_BYTES) return undefined;
  const bytes = Buffer.from(body);
  const response = {
    bootId: bytes.readBigUInt64LE(0),
    sizeBytes: Number(bytes.readBigUInt64LE(8)),
    blockBytes: bytes.readUInt32LE(16),
    ioBytesMax: bytes.readUInt32LE(20),
    slots: bytes.readUInt16LE(24),
    resumed: bytes[26] === 1,
    inlineWriteBytesMax: bytes.readUInt32LE(28),
    storeId: bytes.readBigUInt64LE(32),
  };
  return isPossible(response) ? response : undefined;
}

function isPossible({ sizeBytes, blockBytes, ioBytesMax, slots, inlineWriteBytesMax }: ResumeResponse): boolean {
  return (
    Number.isSafeInteger(sizeBytes) &&
    blockBytes > 0 &&
    (blockBytes & (blockBytes - 1)) === 0 &&
    sizeBytes % blockBytes === 0 &&
    ioBytesMax > 0 &&
    ioBytesMax <= SK_IO_BYTES_MAX &&
    ioBytesMax % blockBytes === 0 &&
    slots === SK_SLOTS_MAX &&
    inlineWriteBytesMax <= SK_INLINE_BYTES_MAX
  );
}
