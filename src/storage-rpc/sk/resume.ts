/**
 * Bodies of RESUME, the first exchange on a connection: the client names its session and the epoch of this connection;
 * the server describes itself, and reports whether it knows the session. Little-endian.
 *
 *     request    0 session id 16   16 epoch 4   20 largest inline write 4   24 the disk that the session has used
 *                120 term of the lease 4   124 access 1 (0 write, 1 shared, 2 read)   125 flags 1 (1 it can wait, 2 it follows)   126 zero 2   128 UUID of the client 16
 *                144 the disk it asks for, a text   208 who the client is, a text   272 the opening
 *     response   0 bootId 8   8 zero 8   16 block size 4   20 largest I/O 4   24 slots 2   26 resumed 1
 *                27 flags 1 (1 read-only, 2 the holder has a connection)   28 largest inline write 4   32 writeVerifier 8   40 the disk
 *                136 term of the lease 4   140 milliseconds that the holder's lease lasts 4   144 the holder, a text
 *                208 the opening
 *     disk       0 size 8   8 generation 8   16 UUID 16   32 name, a text
 *     text       0 length 1   1 UTF-8, padded with zeros 63
 *     opening    0 mark 8   8 checkpoint 4   12 zero 4: of the disk, in its generation; zeros: unknown
 *
 * A session that has used no disk yet names size 0 and a UUID of zeros. The holder is another client that has the
 * lease.
 */

import {
  DISK_NAME_BYTES_MAX,
  type DiskIdentity,
  type DiskOpening,
  NIL_UUID,
  UUID_BYTES,
  uuidBytes,
  uuidText,
} from '../disk/disk-identity.js';
import { DISK_ACCESSES, type LeaseClaim, type LeaseHolder } from './disk-lease.js';
import { SK_INLINE_BYTES_MAX, SK_IO_BYTES_MAX, SK_SLOTS_MAX } from './request.js';

export interface DiskFacts extends DiskIdentity {
  readonly sizeBytes: number;
}

export const ANY_DISK: DiskFacts = { uuid: NIL_UUID, generation: 0, name: '', sizeBytes: 0 };

export interface ResumeRequest {
  readonly sessionId: Uint8Array;
  /** One more with every connection the session tries. */
  readonly epoch: number;
  /** Writes up to here the client would like to send with the request; 0: none. */
  readonly inlineWriteBytesMax: number;
  readonly disk: DiskFacts;
  readonly wanted: string;
  readonly claim: LeaseClaim;
  readonly follows: boolean;
}

export interface ResumeResponse {
  /** Another number means another life of the server: what it had not answered may or may not have happened. */
  readonly bootId: bigint;
  readonly disk: DiskFacts;
  readonly blockBytes: number;
  readonly ioBytesMax: number;
  readonly slots: number;
  readonly resumed: boolean;
  readonly inlineWriteBytesMax: number;
  /** Write verifier of the store: with another one, changes that were not flushed may be gone. */
  readonly writeVerifier: bigint;
  readonly readOnly: boolean;
  readonly term: number;
  readonly holder: Pick<LeaseHolder, 'label' | 'isConnected'>;
  readonly holderMs: number;
}

export const NO_HOLDER: ResumeResponse['holder'] = { label: '', isConnected: false };

const SESSION_ID_BYTES = 16;
const TEXT_BYTES = 1 + DISK_NAME_BYTES_MAX;
const DISK_BYTES = 32 + TEXT_BYTES;
const REQUEST_DISK_AT = 24;
const CLAIM_AT = REQUEST_DISK_AT + DISK_BYTES;
const WANTED_AT = CLAIM_AT + 8 + UUID_BYTES;
const CLAIMANT_AT = WANTED_AT + TEXT_BYTES;
const REQUEST_OPENING_AT = CLAIMANT_AT + TEXT_BYTES;
const OPENING_BYTES = 16;
const REQUEST_BODY_BYTES = REQUEST_OPENING_AT + OPENING_BYTES;
const RESPONSE_DISK_AT = 40;
const TERM_AT = RESPONSE_DISK_AT + DISK_BYTES;
const HOLDER_AT = TERM_AT + 8;
const RESPONSE_OPENING_AT = HOLDER_AT + TEXT_BYTES;
const RESPONSE_BODY_BYTES = RESPONSE_OPENING_AT + OPENING_BYTES;
const PATIENT = 1;
const FOLLOWS = 2;
const READ_ONLY = 1;
const HOLDER_CONNECTED = 2;

export function encodeResumeRequest(request: ResumeRequest): Buffer {
  const out = Buffer.alloc(REQUEST_BODY_BYTES);
  out.set(request.sessionId, 0);
  out.writeUInt32LE(request.epoch, 16);
  out.writeUInt32LE(request.inlineWriteBytesMax, 20);
  writeDisk(out, REQUEST_DISK_AT, request.disk);
  const { term, access, owner, isPatient, label } = request.claim;
  out.writeUInt32LE(term, CLAIM_AT);
  out[CLAIM_AT + 4] = DISK_ACCESSES.indexOf(access);
  out[CLAIM_AT + 5] = (isPatient ? PATIENT : 0) | (request.follows ? FOLLOWS : 0);
  out.set(uuidBytes(owner), CLAIM_AT + 8);
  writeText(out, WANTED_AT, request.wanted);
  writeText(out, CLAIMANT_AT, label);
  writeOpening(out, REQUEST_OPENING_AT, request.disk);
  return out;
}

export function decodeResumeRequest(body: Uint8Array): ResumeRequest | undefined {
  if (body.length !== REQUEST_BODY_BYTES) return undefined;
  const bytes = Buffer.from(body);
  const disk = readDisk(bytes, REQUEST_DISK_AT);
  const wanted = readText(bytes, WANTED_AT);
  const label = readText(bytes, CLAIMANT_AT);
  const access = DISK_ACCESSES[bytes[CLAIM_AT + 4]];
  if (disk === undefined || wanted === undefined || label === undefined || access === undefined) return undefined;
  const isPatient = (bytes[CLAIM_AT + 5] & PATIENT) !== 0;
  const owner = uuidText(bytes.subarray(CLAIM_AT + 8, CLAIM_AT + 8 + UUID_BYTES));
  return {
    sessionId: bytes.subarray(0, SESSION_ID_BYTES),
    epoch: bytes.readUInt32LE(16),
    inlineWriteBytesMax: bytes.readUInt32LE(20),
    disk: { ...disk, openings: [readOpening(bytes, REQUEST_OPENING_AT)] },
    wanted,
    claim: { owner, access, term: bytes.readUInt32LE(CLAIM_AT), isPatient, label },
    follows: (bytes[CLAIM_AT + 5] & FOLLOWS) !== 0,
  };
}

export function encodeResumeResponse(response: ResumeResponse): Buffer {
  const out = Buffer.alloc(RESPONSE_BODY_BYTES);
  out.writeBigUInt64LE(response.bootId, 0);
  out.writeUInt32LE(response.blockBytes, 16);
  out.writeUInt32LE(response.ioBytesMax, 20);
  out.writeUInt16LE(response.slots, 24);
  out[26] = response.resumed ? 1 : 0;
  out.writeUInt32LE(response.inlineWriteBytesMax, 28);
  out.writeBigUInt64LE(response.writeVerifier, 32);
  out[27] = (response.readOnly ? READ_ONLY : 0) | (response.holder.isConnected ? HOLDER_CONNECTED : 0);
  writeDisk(out, RESPONSE_DISK_AT, response.disk);
  out.writeUInt32LE(response.term, TERM_AT);
  out.writeUInt32LE(response.holderMs, TERM_AT + 4);
  writeText(out, HOLDER_AT, response.holder.label);
  writeOpening(out, RESPONSE_OPENING_AT, response.disk);
  return out;
}

/** Undefined if the body is not valid: requests are cut and placed by these numbers. */
export function decodeResumeResponse(body: Uint8Array): ResumeResponse | undefined {
  if (body.length !== RESPONSE_BODY_BYTES) return undefined;
  const bytes = Buffer.from(body);
  const disk = readDisk(bytes, RESPONSE_DISK_AT);
  const label = readText(bytes, HOLDER_AT);
  if (disk === undefined || label === undefined) return undefined;
  const response = {
    bootId: bytes.readBigUInt64LE(0),
    disk: { ...disk, openings: [readOpening(bytes, RESPONSE_OPENING_AT)] },
    blockBytes: bytes.readUInt32LE(16),
    ioBytesMax: bytes.readUInt32LE(20),
    slots: bytes.readUInt16LE(24),
    resumed: bytes[26] === 1,
    inlineWriteBytesMax: bytes.readUInt32LE(28),
    writeVerifier: bytes.readBigUInt64LE(32),
    readOnly: (bytes[27] & READ_ONLY) !== 0,
    term: bytes.readUInt32LE(TERM_AT),
    holder: { label, isConnected: (bytes[27] & HOLDER_CONNECTED) !== 0 },
    holderMs: bytes.readUInt32LE(TERM_AT + 4),
  };
  return isPossible(response) ? response : undefined;
}

function writeDisk(out: Buffer, at: number, { sizeBytes, generation, uuid, name }: DiskFacts): void {
  out.writeBigUInt64LE(BigInt(sizeBytes), at);
  out.writeBigUInt64LE(BigInt(generation), at + 8);
  out.set(uuidBytes(uuid), at + 16);
  writeText(out, at + 32, name);
}

function readDisk(bytes: Buffer, at: number): DiskFacts | undefined {
  const sizeBytes = Number(bytes.readBigUInt64LE(at));
  const generation = Number(bytes.readBigUInt64LE(at + 8));
  const name = readText(bytes, at + 32);
  if (!Number.isSafeInteger(sizeBytes) || !Number.isSafeInteger(generation) || name === undefined) return undefined;
  return { sizeBytes, generation, uuid: uuidText(bytes.subarray(at + 16, at + 16 + UUID_BYTES)), name };
}

function writeOpening(out: Buffer, at: number, { openings: [present] = [] }: DiskFacts): void {
  out.writeBigUInt64LE(present?.mark ?? 0n, at);
  out.writeUInt32LE(present?.checkpoint ?? 0, at + 8);
}

function readOpening(bytes: Buffer, at: number): DiskOpening {
  return { mark: bytes.readBigUInt64LE(at), checkpoint: bytes.readUInt32LE(at + 8) };
}

function writeText(out: Buffer, at: number, text: string): void {
  const bytes = Buffer.from(text).subarray(0, DISK_NAME_BYTES_MAX);
  out[at] = bytes.length;
  out.set(bytes, at + 1);
}

function readText(bytes: Buffer, at: number): string | undefined {
  const length = bytes[at];
  return length <= DISK_NAME_BYTES_MAX ? bytes.toString('utf8', at + 1, at + 1 + length) : undefined;
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
