/**
 * For management datagrams, which are rare and full of odd-sized fields; packets on the hot path are written out by
 * hand.
 */

export interface BitsField {
  readonly kind: 'bits';
  readonly bit: number;
  /** 1..32. */
  readonly width: number;
}

export interface U64Field {
  readonly kind: 'u64';
  readonly offset: number;
}

export interface BytesField {
  readonly kind: 'bytes';
  readonly offset: number;
  readonly length: number;
}

export type Layout = Readonly<Record<string, BitsField | U64Field | BytesField>>;

export type LayoutFields<L extends Layout> = {
  -readonly [Name in keyof L]: L[Name] extends BitsField ? number : L[Name] extends U64Field ? bigint : Uint8Array;
};

export function bits(offset: number, firstBit: number, width: number): BitsField {
  return { kind: 'bits', bit: 8 * offset + firstBit, width };
}

export function u8(offset: number): BitsField {
  return bits(offset, 0, 8);
}

export function u16(offset: number): BitsField {
  return bits(offset, 0, 16);
}

export function u24(offset: number): BitsField {
  return bits(offset, 0, 24);
}

export function u32(offset: number): BitsField {
  return bits(offset, 0, 32);
}

export function u64(offset: number): U64Field {
  return { kind: 'u64', offset };
}

export function bytes(offset: number, length: number): BytesField {
  return { kind: 'bytes', offset, length };
}

/** The message must be as long as its last field reaches. */
export function readFields<L extends Layout>(layout: L, message: Uint8Array): LayoutFields<L> {
  const view = new DataView(message.buffer, message.byteOffset, message.length);
  const values: Record<string, number | bigint | Uint8Array> = {};
  for (const [name, field] of Object.entries(layout)) {
    if (field.kind === 'u64') values[name] = view.getBigUint64(field.offset);
    else if (field.kind === 'bytes') values[name] = message.slice(field.offset, field.offset + field.length);
    else values[name] = readBits(message, field);
  }
  return values as LayoutFields<L>;
}

/** Byte arrays may be shorter than their field; the rest of it stays as it is. */
export function writeFields<L extends Layout>(layout: L, values: LayoutFields<L>, message: Uint8Array): void {
  const view = new DataView(message.buffer, message.byteOffset, message.length);
  for (const [name, field] of Object.entries(layout)) {
    const value = values[name];
    if (field.kind === 'u64') view.setBigUint64(field.offset, value as bigint);
    else if (field.kind === 'bytes') message.set((value as Uint8Array).subarray(0, field.length), field.offset);
    else writeBits(message, field, value as number);
  }
}

export function zeroFields<L extends Layout>(layout: L): LayoutFields<L> {
  const values: Record<string, number | bigint | Uint8Array> = {};
  for (const [name, field] of Object.entries(layout)) {
    values[name] = field.kind === 'u64' ? 0n : field.kind === 'bytes' ? new Uint8Array(field.length) : 0;
  }
  return values as LayoutFields<L>;
}

function readBits(message: Uint8Array, { bit, width }: BitsField): number {
  let value = 0;
  if (bit % 8 === 0 && width % 8 === 0) {
    for (let i = bit >> 3; i < (bit + width) >> 3; i++) value = value * 256 + message[i];
    return value;
  }
  for (let i = bit; i < bit + width; i++) value = value * 2 + ((message[i >> 3] >> (7 - (i & 7))) & 1);
  return value;
}

function writeBits(message: Uint8Array, { bit, width }: BitsField, value: number): void {
  let rest = value;
  if (bit % 8 === 0 && width % 8 === 0) {
    for (let i = ((bit + width) >> 3) - 1; i >= bit >> 3; i--) {
      message[i] = rest % 256;
      rest = Math.floor(rest / 256);
    }
    return;
  }
  for (let i = bit + width - 1; i >= bit; i--) {
    const mask = 0x80 >> (i & 7);
    if (rest % 2 === 1) message[i >> 3] |= mask;
    else message[i >> 3] &= ~mask;
    rest = Math.floor(rest / 2);
  }
}
