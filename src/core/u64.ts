/**
 * 64-bit quantities as two unsigned 32-bit halves. BigInt appears only at the public API: one BigInt per packet costs more than
 * the rest of the header.
 */

export const U32 = 0x1_0000_0000;

/** high * 2^32 + low as a Number; exact below 2^53. */
export function joinU64(high: number, low: number): number {
  return high * U32 + low;
}

export function highOf(value: number): number {
  return Math.floor(value / U32) >>> 0;
}

export function lowOf(value: number): number {
  return value >>> 0;
}

export function bigFromU64(high: number, low: number): bigint {
  return (BigInt(high) << 32n) | BigInt(low);
}

export function highOfBig(value: bigint): number {
  return Number((value >> 32n) & 0xffffffffn);
}

export function lowOfBig(value: bigint): number {
  return Number(value & 0xffffffffn);
}
