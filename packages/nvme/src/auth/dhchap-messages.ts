/** Messages of DH-HMAC-CHAP, the data of Authentication Send and Receive (NVMe base specification 2.0 §8.13.5.3). Readers give undefined for what is none. */

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

/** Why an authentication ended: reason code explanations. */
export const FAILURE = {
  FAILED: 1,
  PROTOCOL: 2,
  SECURE_CHANNEL: 3,
  HASH: 4,
  GROUP: 5,
  PAYLOAD: 6,
  MESSAGE: 7,
} as const;
/** One of {@link FAILURE}. */
export type FailureCode = (typeof FAILURE)[keyof typeof FAILURE];

const HEADER_BYTES = 16;
const NEGOTIATE_BYTES = 8;
const PROTOCOL_BYTES = 64;
const IDS_MAX = 30;
const REASON_FAILED = 1;

/** What the host offers. */
export interface Negotiation {
  /** Of this exchange, chosen by the host. */
  readonly transaction: number;
  /** 0: no secure channel over the connection. */
  readonly secureChannel: number;
  /** Numbers of hashes. */
  readonly hashes: readonly number[];
  /** Numbers of groups. */
  readonly groups: readonly number[];
}

/** The target's question. */
export interface Challenge {
  /** Of this exchange. */
  readonly transaction: number;
  /** Number of the hash. */
  readonly hash: number;
  /** Number of the group. */
  readonly group: number;
  /** Not 0. */
  readonly sequence: number;
  /** As long as results of the hash. */
  readonly challenge: Buffer;
  /** Public value of the target; empty without a group. */
  readonly publicValue: Buffer;
}

/** The host's answer, and its own question. */
export interface Reply {
  /** Of this exchange. */
  readonly transaction: number;
  /** To the target's challenge. */
  readonly response: Buffer;
  /** The host's challenge; undefined: it asks nothing. */
  readonly challenge: Buffer | undefined;
  /** That goes with the host's challenge; 0 without one. */
  readonly sequence: number;
  /** Public value of the host; empty without a group. */
  readonly publicValue: Buffer;
}

/** The target is content. */
export interface Success {
  /** Of this exchange. */
  readonly transaction: number;
  /** To the host's challenge; undefined: there was none. */
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

/** Writes an AUTH_Negotiate message. */
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

/** Reads an AUTH_Negotiate message; of several protocols it takes DH-HMAC-CHAP. */
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

/** Writes a DH-HMAC-CHAP_Challenge message. */
export function writeChallenge({ transaction, hash, group, sequence, challenge, publicValue }: Challenge): Buffer {
  const message = header(HEADER_BYTES, DHCHAP, MESSAGE.CHALLENGE, transaction);
  message[6] = challenge.length;
  message[8] = hash;
  message[9] = group;
  message.writeUInt16LE(publicValue.length, 10);
  message.writeUInt32LE(sequence, 12);
  return Buffer.concat([message, challenge, publicValue]);
}

/** Reads a DH-HMAC-CHAP_Challenge message. */
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

/** Writes a DH-HMAC-CHAP_Reply message. */
export function writeReply({ transaction, response, challenge, sequence, publicValue }: Reply): Buffer {
  const message = header(HEADER_BYTES, DHCHAP, MESSAGE.REPLY, transaction);
  message[6] = response.length;
  message[8] = challenge === undefined ? 0 : 1;
  message.writeUInt16LE(publicValue.length, 10);
  message.writeUInt32LE(sequence, 12);
  return Buffer.concat([message, response, challenge ?? Buffer.alloc(response.length), publicValue]);
}

/** Reads a DH-HMAC-CHAP_Reply message. */
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

/** Writes a DH-HMAC-CHAP_Success1 message; `hashBytes` is the length of results of the hash. */
export function writeSuccess({ transaction, response }: Success, hashBytes: number): Buffer {
  const message = header(HEADER_BYTES, DHCHAP, MESSAGE.SUCCESS1, transaction);
  message[6] = hashBytes;
  message[8] = response === undefined ? 0 : 1;
  return Buffer.concat([message, response ?? Buffer.alloc(0)]);
}

/** Reads a DH-HMAC-CHAP_Success1 message. */
export function readSuccess(message: Buffer): Success | undefined {
  if (!is(message, DHCHAP, MESSAGE.SUCCESS1, HEADER_BYTES)) return undefined;
  const end = HEADER_BYTES + message[6];
  const responds = (message[8] & 1) === 1;
  if (responds && message.length < end) return undefined;
  const response = responds ? Buffer.from(message.subarray(HEADER_BYTES, end)) : undefined;
  return { transaction: message.readUInt16LE(4), response };
}

/** Writes a DH-HMAC-CHAP_Success2 message: the host is content, too. */
export function writeConfirmation(transaction: number): Buffer {
  return header(HEADER_BYTES, DHCHAP, MESSAGE.SUCCESS2, transaction);
}

/** The transaction of a DH-HMAC-CHAP_Success2 message. */
export function readConfirmation(message: Buffer): number | undefined {
  return is(message, DHCHAP, MESSAGE.SUCCESS2, HEADER_BYTES) ? message.readUInt16LE(4) : undefined;
}

/** Writes AUTH_Failure1 of a target, or AUTH_Failure2 of a host. */
export function writeFailure(from: 'target' | 'host', transaction: number, code: FailureCode): Buffer {
  const id = from === 'target' ? MESSAGE.FAILURE1 : MESSAGE.FAILURE2;
  const message = header(8, COMMON, id, transaction);
  message[6] = REASON_FAILED;
  message[7] = code;
  return message;
}

/** The explanation of an AUTH_Failure1 message. */
export function readFailure(message: Buffer): number | undefined {
  return is(message, COMMON, MESSAGE.FAILURE1, 8) ? message[7] : undefined;
}
