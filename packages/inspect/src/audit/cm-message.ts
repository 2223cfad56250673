/** What an audit needs of the messages of connection management (IBTA vol. 1 §12.6, §13.4.3). Offsets count from the start of the MAD. */

import { readU16, readU24, readU32 } from 'rocev2/internal/core';

/** Length of every management datagram. */
export const MAD_BYTES = 256;
const MAD_HEADER_BYTES = 24;
const CLASS_CM = 0x07;

/** Attributes: what a message is. */
export const CM_REQ = 0x10;
/** Rejects a connection. */
export const CM_REJ = 0x12;
/** Accepts it. */
export const CM_REP = 0x13;

/** What a REQ or REP says of the side that sends it. */
export interface CmSide {
  /** Chosen by the sender. */
  readonly commId: number;
  /** REP: the `commId` of the REQ. */
  readonly remoteCommId: number;
  /** Queue pair of the sender. */
  readonly qpn: number;
  /** PSN of the first request to the sender. */
  readonly startPsn: number;
  /** READs and atomics that the sender serves at a time. */
  readonly responderResources: number;
  /** REQ: path MTU in bytes, 0 where the code is reserved. */
  readonly mtu: number;
  /** REQ: 4.096 us * 2^n. 0: none. */
  readonly ackTimeout: number;
  /** REQ: how often the other side tries again after timeouts. By Linux both sides do so. */
  readonly retryCount: number;
  /** How often the other side tries again after RNR NAKs; 7: for ever. */
  readonly rnrRetryCount: number;
  /** REQ: the connection is reliable. */
  readonly isReliable: boolean;
}

/** Whether the payload of a datagram to QP 1 is a message of connection management. */
export function isCmMessage(bytes: Uint8Array, at: number, length: number): boolean {
  return length >= MAD_HEADER_BYTES && bytes[at + 1] === CLASS_CM;
}

/** The attribute: {@link CM_REQ} and others. */
export function cmAttribute(bytes: Uint8Array, at: number): number {
  return readU16(bytes, at + 16);
}

/** What is wrong with the form of the message; undefined if nothing is. */
export function cmFormError(bytes: Uint8Array, at: number, length: number): string | undefined {
  const fields: readonly (readonly [string, number, number])[] = [
    ['length', length, MAD_BYTES],
    ['base version', bytes[at], 1],
    ['class version', bytes[at + 2], 2],
    ['method', bytes[at + 3], 3],
  ];
  const wrong = fields.find(([, seen, expected]) => seen !== expected);
  return wrong && `${wrong[0]} ${wrong[1]}; expected ${wrong[2]}`;
}

/** Reason of a REJ. */
export function rejectReason(bytes: Uint8Array, at: number): number {
  return readU16(bytes, at + MAD_HEADER_BYTES + 10);
}

/** Reads a REQ. */
export function readReq(bytes: Uint8Array, at: number): CmSide {
  const o = at + MAD_HEADER_BYTES;
  const mtuCode = bytes[o + 50] >> 4;
  return {
    commId: readU32(bytes, o),
    remoteCommId: 0,
    qpn: readU24(bytes, o + 32),
    startPsn: readU24(bytes, o + 44),
    responderResources: bytes[o + 35],
    mtu: mtuCode >= 1 && mtuCode <= 5 ? 128 << mtuCode : 0,
    ackTimeout: bytes[o + 95] >> 3,
    retryCount: bytes[o + 47] & 7,
    rnrRetryCount: bytes[o + 50] & 7,
    isReliable: ((bytes[o + 43] >> 1) & 3) === 0,
  };
}

/** Reads a REP. */
export function readRep(bytes: Uint8Array, at: number): CmSide {
  const o = at + MAD_HEADER_BYTES;
  return {
    commId: readU32(bytes, o),
    remoteCommId: readU32(bytes, o + 4),
    qpn: readU24(bytes, o + 12),
    startPsn: readU24(bytes, o + 20),
    responderResources: bytes[o + 24],
    mtu: 0,
    ackTimeout: 0,
    retryCount: 0,
    rnrRetryCount: bytes[o + 27] >> 5,
    isReliable: true,
  };
}
