/**
 * Bodies of RESUME, the first exchange on a connection: the client names its session and the epoch of this connection, the server says what
 * it is and whether it knows the session. Little-endian.
 *
 *     request    0 session id 16   16 epoch 4   20 largest inline write 4   24 the disk that the session has used
 *     response   0 bootId 8   8 zero 8   16 block size 4   20 largest I/O 4   24 slots 2   26 resumed 1   27 zero 1   28 largest inline write 4
 *                32 storeId 8   40 the disk
 *     disk       0 size 8   8 generation 8   16 UUID 16   32 length of the name 1   33 name, UTF-8, zeros behind it 63
 *
 * A session that has used no disk yet names size 0 and a UUID of zeros.
 */

import {
  DISK_NAME_BYTES_MAX,
  type DiskIdentity,
  NIL_UUID,
  UUID_BYTES,
  uuidBytes,
  uuidText,
} from '../disk/disk-identity.js';

import { SK_INLINE_BYTES_MAX, SK_IO_BYTES_MAX, SK_SLOTS_MAX } from './request.js';

/** Which disk, in a request and in its answer. */
export interface DiskFacts extends DiskIdentity {
  /** In bytes; 0: any. */
  readonly sizeBytes: number;
}

/** Any disk: what a session expects that has used none. */
export const ANY_DISK: DiskFacts = { uuid: NIL_UUID, generation: 0, name: '', sizeBytes: 0 };

/** What the client says first. */
export interface ResumeRequest {
  /** 128 random bits, made by the client. */
  readonly sessionId: Uint8Array;
  /** One more with every connection the session tries. */
  readonly epoch: number;
  /** Writes up to here the client would like to send with the request; 0: none. */
  readonly inlineWriteBytesMax: number;
  /** The disk that the session has used. */
  readonly disk: DiskFacts;
}

/** What the server answers. */
export interface ResumeResponse {
  /** Another number means another life of the server: what it had not answered may or may not have happened. */
  readonly bootId: bigint;
  /** Which disk the session uses from here on, or would have to. */
  readonly disk: DiskFacts;
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
const DISK_BYTES = 33 + DISK_NAME_BYTES_MAX;
const REQUEST_DISK_AT = 24;
const REQUEST_BODY_BYTES = REQUEST_DISK_AT + DISK_BYTES;
const RESPONSE_DISK_AT = 40;
const RESPONSE_BODY_BYTES = RESPONSE_DISK_AT + DISK_BYTES;

/** The 120 bytes of the body. */
export function encodeResumeRequest(request: ResumeRequest): Buffer {
  const out = Buffer.alloc(REQUEST_BODY_BYTES);
  out.set(request.sessionId, 0);
  out.writeUInt32LE(request.epoch, 16);
  out.writeUInt32LE(request.inlineWriteBytesMax, 20);
  writeDisk(out, REQUEST_DISK_AT, request.disk);
  return out;
}

/** Undefined when the body has another length, or names an impossible disk. */
export function decodeResumeRequest(body: Uint8Array): ResumeRequest | undefined {
  if (body.length !== REQUEST_BODY_BYTES) return undefined;
  const bytes = Buffer.from(body);
  const disk = readDisk(bytes, REQUEST_DISK_AT);
  if (disk === undefined) return undefined;
  return {
    sessionId: bytes.subarray(0, SESSION_ID_BYTES),
    epoch: bytes.readUInt32LE(16),
    inlineWriteBytesMax: bytes.readUInt32LE(20),
    disk,
  };
}

/** The 136 bytes of the body. */
export function encodeResumeResponse(response: ResumeResponse): Buffer {
  const out = Buffer.alloc(RESPONSE_BODY_BYTES);
  out.writeBigUInt64LE(response.bootId, 0);
  out.writeUInt32LE(response.blockBytes, 16);
  out.writeUInt32LE(response.ioBytesMax, 20);
  out.writeUInt16LE(response.slots, 24);
  out[26] = response.resumed ? 1 : 0;
  out.writeUInt32LE(response.inlineWriteBytesMax, 28);
  out.writeBigUInt64LE(response.storeId, 32);
  writeDisk(out, RESPONSE_DISK_AT, response.disk);
  return out;
}

/** Undefined when the body cannot be what a server says: requests are cut and placed by these numbers. */
export function decodeResumeResponse(body: Uint8Array): ResumeResponse | undefined {
  if (body.length !== RESPONSE_BODY_BYTES) return undefined;
  const bytes = Buffer.from(body);
  const disk = readDisk(bytes, RESPONSE_DISK_AT);
  if (disk === undefined) return undefined;
  const response = {
    bootId: bytes.readBigUInt64LE(0),
    disk,
    blockBytes: bytes.readUInt32LE(16),
    ioBytesMax: bytes.readUInt32LE(20),
    slots: bytes.readUInt16LE(24),
    resumed: bytes[26] === 1,
    inlineWriteBytesMax: bytes.readUInt32LE(28),
    storeId: bytes.readBigUInt64LE(32),
  };
  return isPossible(response) ? response : undefined;
}

function writeDisk(out: Buffer, at: number, { sizeBytes, generation, uuid, name }: DiskFacts): void {
  const text = Buffer.from(name).subarray(0, DISK_NAME_BYTES_MAX);
  out.writeBigUInt64LE(BigInt(sizeBytes), at);
  out.writeBigUInt64LE(BigInt(generation), at + 8);
  out.set(uuidBytes(uuid), at + 16);
  out[at + 32] = text.length;
  out.set(text, at + 33);
}

/** Undefined: no disk is so. */
function readDisk(bytes: Buffer, at: number): DiskFacts | undefined {
  const sizeBytes = Number(bytes.readBigUInt64LE(at));
  const generation = Number(bytes.readBigUInt64LE(at + 8));
  const nameBytes = bytes[at + 32];
  const isPossible =
    Number.isSafeInteger(sizeBytes) && Number.isSafeInteger(generation) && nameBytes <= DISK_NAME_BYTES_MAX;
  if (!isPossible) return undefined;
  const uuid = uuidText(bytes.subarray(at + 16, at + 16 + UUID_BYTES));
  return { sizeBytes, generation, uuid, name: bytes.toString('utf8', at + 33, at + 33 + nameBytes) };
}

function isPossible({ disk, blockBytes, ioBytesMax, slots, inlineWriteBytesMax }: ResumeResponse): boolean {
  return (
    blockBytes > 0 &&
    (blockBytes & (blockBytes - 1)) === 0 &&
    disk.sizeBytes % blockBytes === 0 &&
    ioBytesMax > 0 &&
    ioBytesMax <= SK_IO_BYTES_MAX &&
    ioBytesMax % blockBytes === 0 &&
    slots === SK_SLOTS_MAX &&
    inlineWriteBytesMax <= SK_INLINE_BYTES_MAX
  );
}
