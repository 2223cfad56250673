/**
 * What an audit needs of the messages of connection management (IBTA vol. 1 §12.6, §13.4.3). Offsets count from the
 * start of the MAD.
 */

import { readU16, readU24, readU32 } from 'rocev2/internal/core';

export const MAD_BYTES = 256;
const MAD_HEADER_BYTES = 24;
const CLASS_CM = 0x07;

export const CM_REQ = 0x10;
export const CM_REJ = 0x12;
export const CM_REP = 0x13;

export interface CmSide {
  readonly commId: number;
  readonly remoteCommId: number;
  readonly qpn: number;
  readonly startPsn: number;
  readonly responderResources: number;
  /** REQ: path MTU in bytes, 0 where the code is reserved. */
  readonly mtu: number;
  readonly ackTimeout: number;
  /** REQ: how often the other side tries again after timeouts. By Linux both sides do so. */
  readonly retryCount: number;
  readonly rnrRetryCount: number;
  readonly isReliable: boolean;
}

export function isCmMessage(bytes: Uint8Array, at: number, length: number): boolean {
  return length >= MAD_HEADER_BYTES && bytes[at + 1] === CLASS_CM;
}

export function cmAttribute(bytes: Uint8Array, at: number): number {
  return readU16(bytes, at + 16);
}

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

export function rejectReason(bytes: Uint8Array, at: number): number {
  return readU16(bytes, at + MAD_HEADER_BYTES + 10);
}

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
