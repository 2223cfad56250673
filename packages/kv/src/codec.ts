import { deserialize, serialize } from 'node:v8';
import { namesHint, RoceError } from 'rocev2/internal/core';

/** Converts values to bytes and back. `pack` and `unpack` of msgpackr are one: `{ encode: pack, decode: unpack }`. */
export interface Codec<V> {
  /** The bytes of a value. */
  encode(value: V): Uint8Array;
  /** The value of these bytes, which the codec may keep. Throws for bytes that it has not made. */
  decode(bytes: Buffer): V;
}

/**
 * `bytes`: Uint8Array in, Buffer out. `string`: text in UTF-8. `json`: values that JSON can represent. `structured`:
 * values that the structured clone algorithm can copy.
 */
export type CodecName = 'bytes' | 'string' | 'json' | 'structured';

const CODECS = {
  bytes: { encode: (value: Uint8Array) => value, decode: (bytes: Buffer) => bytes },
  string: { encode: (value: string) => Buffer.from(value), decode: (bytes: Buffer) => bytes.toString() },
  json: {
    encode: (value: unknown) => Buffer.from(JSON.stringify(value)),
    decode: (bytes: Buffer): unknown => JSON.parse(bytes.toString()),
  },
  structured: { encode: (value: unknown) => serialize(value), decode: (bytes: Buffer): unknown => deserialize(bytes) },
} as const satisfies Record<CodecName, object>;

export function codecOf<V>(codec: CodecName | Codec<V> = 'bytes'): Codec<V> {
  if (typeof codec === 'string') {
    if (Object.hasOwn(CODECS, codec)) return CODECS[codec] as unknown as Codec<V>;
    throw new RoceError(
      'ERR_ROCE_UNKNOWN_NAME',
      `codec is '${codec}'`,
      namesHint(codec, Object.keys(CODECS), 'it is one of'),
    );
  }
  if (typeof codec?.encode === 'function' && typeof codec.decode === 'function') return codec;
  throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', 'the codec is not a codec', 'pass a name, or { encode, decode }');
}

export function encoded<V>(codec: Codec<V>, value: V): Buffer {
  let bytes: Uint8Array;
  try {
    bytes = codec.encode(value);
  } catch (cause) {
    throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', 'the codec cannot encode the value', undefined, { cause });
  }
  if (bytes instanceof Uint8Array) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', 'the value has no bytes', "pass a Buffer, or a codec: 'json'");
}

export function decoded<V>(codec: Codec<V>, bytes: Buffer): V {
  try {
    return codec.decode(bytes);
  } catch (cause) {
    const hint = 'use the same codec on all sides';
    throw new RoceError('ERR_ROCE_MISMATCH', 'the codec cannot decode the value', hint, { cause });
  }
}
