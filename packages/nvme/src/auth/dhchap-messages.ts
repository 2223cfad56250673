/**
 * Messages of DH-HMAC-CHAP, the data of Authentication Send and Receive (NVMe base specification 2.0 §8.13.5.3).
 * Readers return undefined for malformed ones.
 */

const COMMON = 0x00;
const DHCHAP = 0x01;
const MESSAGE = {
  NEGOTIATE: 0x00,
  CHALLENGE: 0x01,
  REPLY: 0x02,
  SUCCESS1: 0x03,
  SUCCESS2: 0x04,
  FAILURE2: 0xf0,
  FAILURE1: 0xf1,
} as const;

export const FAILURE = {
  FAILED: 1,
  PROTOCOL: 2,
  SECURE_CHANNEL: 3,
  HASH: 4,
  GROUP: 5,
  PAYLOAD: 6,
  MESSAGE: 7,
} as const;
export type FailureCode = (typeof FAILURE)[keyof typeof FAILURE];

const HEADER_BYTES = 16;
const NEGOTIATE_BYTES = 8;
const PROTOCOL_BYTES = 64;
const IDS_MAX = 30;
const REASON_FAILED = 1;

export interface Negotiation {
  readonly transaction: number;
  readonly secureChannel: number;
  readonly hashes: readonly number[];
  readonly groups: readonly number[];
}

export interface Challenge {
  readonly transaction: number;
  readonly hash: number;
  readonly group: number;
  readonly sequence: number;
  readonly challenge: Buffer;
  readonly publicValue: Buffer;
}

export interface Reply {
  readonly transaction: number;
  readonly response: Buffer;
  readonly challenge: Buffer | undefined;
  /** That goes with the host's challenge; 0 without one. */
  readonly sequence: number;
  readonly publicValue: Buffer;
}

export interface Success {
  readonly transaction: number;
  readonly response: Buffer | undefined;
}

function header(bytes: number, type: number, id: number, transaction: number): Buffer {
  const message = Buffer.alloc(bytes);
  message[0] = type;
  message[1] = id;
  message.writeUInt16LE(transaction, 4);
  return message;
}

function is(message: Buffer, type: number, id: number, bytes: number): boolean {
  return message.length >= bytes && message[0] === type && message[1] === id;
}

export function writeNegotiation({ transaction, secureChannel, hashes, groups }: Negotiation): Buffer {
  const message = header(NEGOTIATE_BYTES + PROTOCOL_BYTES, COMMON, MESSAGE.NEGOTIATE, transaction);
  message[6] = secureChannel;
  message[7] = 1;
  message[8] = DHCHAP;
  message[10] = hashes.length;
  message[11] = groups.length;
  message.set(hashes, 12);
  message.set(groups, 12 + IDS_MAX);
  return message;
}

export function readNegotiation(message: Buffer): Negotiation | undefined {
  if (!is(message, COMMON, MESSAGE.NEGOTIATE, NEGOTIATE_BYTES)) return undefined;
  const count = message[7];
  for (let i = 0; i < count; i++) {
    const at = NEGOTIATE_BYTES + i * PROTOCOL_BYTES;
    if (message.length < at + PROTOCOL_BYTES) return undefined;
    const [hashes, groups] = [message[at + 2], message[at + 3]];
    if (message[at] !== DHCHAP) continue;
    if (hashes > IDS_MAX || groups > IDS_MAX) return undefined;
    return {
      transaction: message.readUInt16LE(4),
      secureChannel: message[6],
      hashes: [...message.subarray(at + 4, at + 4 + hashes)],
      groups: [...message.subarray(at + 4 + IDS_MAX, at + 4 + IDS_MAX + groups)],
    };
  }
  return undefined;
}

export function writeChallenge({ transaction, hash, group, sequence, challenge, publicValue }: Challenge): Buffer {
  const message = header(HEADER_BYTES, DHCHAP, MESSAGE.CHALLENGE, transaction);
  message[6] = challenge.length;
  message[8] = hash;
  message[9] = group;
  message.writeUInt16LE(publicValue.length, 10);
  message.writeUInt32LE(sequence, 12);
  return Buffer.concat([message, challenge, publicValue]);
}

export function readChallenge(message: Buffer): Challenge | undefined {
  if (!is(message, DHCHAP, MESSAGE.CHALLENGE, HEADER_BYTES)) return undefined;
  const middle = HEADER_BYTES + message[6];
  const end = middle + message.readUInt16LE(10);
  if (message.length < end) return undefined;
  return {
    transaction: message.readUInt16LE(4),
    hash: message[8],
    group: message[9],
    sequence: message.readUInt32LE(12),
    challenge: Buffer.from(message.subarray(HEADER_BYTES, middle)),
    publicValue: Buffer.from(message.subarray(middle, end)),
  };
}

export function writeReply({ transaction, response, challenge, sequence, publicValue }: Reply): Buffer {
  const message = header(HEADER_BYTES, DHCHAP, MESSAGE.REPLY, transaction);
  message[6] = response.length;
  message[8] = challenge === undefined ? 0 : 1;
  message.writeUInt16LE(publicValue.length, 10);
  message.writeUInt32LE(sequence, 12);
  return Buffer.concat([message, response, challenge ?? Buffer.alloc(response.length), publicValue]);
}

export function readReply(message: Buffer): Reply | undefined {
  if (!is(message, DHCHAP, MESSAGE.REPLY, HEADER_BYTES)) return undefined;
  const bytes = message[6];
  const at = { challenge: HEADER_BYTES + bytes, publicValue: HEADER_BYTES + 2 * bytes };
  const end = at.publicValue + message.readUInt16LE(10);
  if (message.length < end) return undefined;
  const asks = (message[8] & 1) === 1;
  return {
    transaction: message.readUInt16LE(4),
    response: Buffer.from(message.subarray(HEADER_BYTES, at.challenge)),
    challenge: asks ? Buffer.from(message.subarray(at.challenge, at.publicValue)) : undefined,
    sequence: message.readUInt32LE(12),
    publicValue: Buffer.from(message.subarray(at.publicValue, end)),
  };
}

export function writeSuccess({ transaction, response }: Success, hashBytes: number): Buffer {
  const message = header(HEADER_BYTES, DHCHAP, MESSAGE.SUCCESS1, transaction);
  message[6] = hashBytes;
  message[8] = response === undefined ? 0 : 1;
  return Buffer.concat([message, response ?? Buffer.alloc(0)]);
}

export function readSuccess(message: Buffer): Success | undefined {
  if (!is(message, DHCHAP, MESSAGE.SUCCESS1, HEADER_BYTES)) return undefined;
  const end = HEADER_BYTES + message[6];
  const responds = (message[8] & 1) === 1;
  if (responds && message.length < end) return undefined;
  const response = responds ? Buffer.from(message.subarray(HEADER_BYTES, end)) : undefined;
  return { transaction: message.readUInt16LE(4), response };
}

export function writeConfirmation(transaction: number): Buffer {
  return header(HEADER_BYTES, DHCHAP, MESSAGE.SUCCESS2, transaction);
}

export function readConfirmation(message: Buffer): number | undefined {
  return is(message, DHCHAP, MESSAGE.SUCCESS2, HEADER_BYTES) ? message.readUInt16LE(4) : undefined;
}

export function writeFailure(from: 'target' | 'host', transaction: number, code: FailureCode): Buffer {
  const id = from === 'target' ? MESSAGE.FAILURE1 : MESSAGE.FAILURE2;
  const message = header(8, COMMON, id, transaction);
  message[6] = REASON_FAILED;
  message[7] = code;
  return message;
}

export function readFailure(message: Buffer): number | undefined {
  return is(message, COMMON, MESSAGE.FAILURE1, 8) ? message[7] : undefined;
}
