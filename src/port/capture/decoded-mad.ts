/**
 * The name of a connection management datagram on QP1 (IBTA vol. 1 §13.4.3): its kind, not its contents.
 */

import { readU16, toHex } from '../../core/bytes.js';

const MAD_BYTES = 256;
const CLASS_CM = 0x07;
const ATTRIBUTE_REJ = 0x12;
/** REJ: reason code, counted from the start of the MAD. */
const REJ_REASON_OFFSET = 24 + 10;

const CM_ATTRIBUTES: Readonly<Record<number, string>> = {
  16: 'REQ',
  17: 'MRA',
  18: 'REJ',
  19: 'REP',
  20: 'RTU',
  21: 'DREQ',
  22: 'DREP',
  23: 'SIDR_REQ',
  24: 'SIDR_REP',
  25: 'LAP',
  26: 'APR',
};

/** IBTA vol. 1 §12.6.7.2, table 111. */
const REJ_REASONS: Readonly<Record<number, string>> = {
  1: 'no QP available',
  3: 'no resources available',
  4: 'timeout',
  5: 'unsupported request',
  6: 'invalid communication id',
  8: 'invalid service id',
  9: 'invalid transport type',
  10: 'stale connection',
  12: 'invalid GID',
  26: 'invalid path MTU',
  27: 'insufficient responder resources',
  28: 'consumer defined',
  29: 'invalid RNR retry count',
  31: 'unsupported class version',
  35: 'vendor option not supported',
};

/** Kind of a management datagram. */
export interface DecodedMad {
  /** `CM REQ`, or `class 0x04 attribute 0x0001` for other management classes. */
  readonly name: string;
  /** 16 hex digits. */
  readonly transactionId: string;
  /** Only of a REJ. */
  readonly rejectReason?: string;
}

export function decodeMad(mad: Uint8Array): DecodedMad | undefined {
  if (mad.length < MAD_BYTES) return undefined;
  const managementClass = mad[1];
  const attribute = readU16(mad, 16);
  const transactionId = toHex(mad.subarray(8, 16));
  const cmName = managementClass === CLASS_CM ? CM_ATTRIBUTES[attribute] : undefined;
  if (cmName === undefined) {
    const hex = (value: number, digits: number) => `0x${value.toString(16).padStart(digits, '0')}`;
    return { name: `class ${hex(managementClass, 2)} attribute ${hex(attribute, 4)}`, transactionId };
  }
  if (attribute !== ATTRIBUTE_REJ) return { name: `CM ${cmName}`, transactionId };
  const reason = readU16(mad, REJ_REASON_OFFSET);
  return { name: `CM ${cmName}`, transactionId, rejectReason: REJ_REASONS[reason] ?? `reason ${reason}` };
}
