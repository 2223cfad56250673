/**
 * 64-bit quantities as two unsigned 32-bit halves. BigInt appears only at the public API: one BigInt per packet costs
 * more than the rest of the header.
 */

/** 2^32: the weight of the high half in a Number, exact below 2^53. */
export const U32 = 0x1_0000_0000;

export function bigFromU64(high: number, low: number): bigint {
  return (BigInt(high) << 32n) | BigInt(low);
}

export function highOfBig(value: bigint): number {
  return Number((value >> 32n) & 0xffffffffn);
}

export function lowOfBig(value: bigint): number {
  return Number(value & 0xffffffffn);
}

/** `high * 2^32 + low` is exact as a Number, below 2^53, while `high` is below this. */
export const EXACT_HIGH_END = 2 ** 53 / U32;
