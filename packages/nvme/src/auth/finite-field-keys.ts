/**
 * Finite-field Diffie-Hellman with a given prime, through OpenSSL's key objects. `createDiffieHellman` would do as well, but since OpenSSL 3.5 (Node 24) it
 * proves the prime anew each time: a second for 2048 bits, minutes for 8192. Key objects take and give public values in DER only (X.690; RFC 3279 §2.3.3).
 */

import { createPublicKey, diffieHellman, generateKeyPairSync, type KeyObject } from 'node:crypto';

const INTEGER = 0x02;
const BIT_STRING = 0x03;
const SEQUENCE = 0x30;
const NO_UNUSED_BITS = Buffer.of(0);
/** Node takes groups with a prime of the caller; its types of version 20 do not know of it. */
const makeKeys = generateKeyPairSync as unknown as (
  type: 'dh',
  options: { readonly prime: Buffer; readonly generator: number },
) => { readonly privateKey: KeyObject; readonly publicKey: KeyObject };

/** One side's key pair of a group with generator 2, made for one exchange. */
export class FiniteFieldKeys {
  /** Its public value, big-endian, as long as the prime. */
  readonly publicValue: Buffer;
  readonly #privateKey: KeyObject;
  /** Algorithm and group, as they stand in front of a public value. */
  readonly #algorithm: Buffer;
  readonly #bytes: number;

  /** `prime`: big-endian, its first byte is not 0. Throws what OpenSSL says of a prime that it does not take. */
  constructor(prime: Buffer) {
    const { privateKey, publicKey } = makeKeys('dh', { prime, generator: 2 });
    const key = contentOf(publicKey.export({ type: 'spki', format: 'der' }));
    const algorithmBytes = lengthOf(key);
    const bits = contentOf(key.subarray(algorithmBytes));
    const value = contentOf(bits.subarray(NO_UNUSED_BITS.length));
    this.#privateKey = privateKey;
    this.#algorithm = key.subarray(0, algorithmBytes);
    this.#bytes = prime.length;
    this.publicValue = padded(value, prime.length);
  }

  /** What both sides alone can compute, as long as the prime. `peer`: the other's public value, from 2 to prime - 2. */
  secretWith(peer: Buffer): Buffer {
    const value = Buffer.concat([NO_UNUSED_BITS, der(INTEGER, shortest(peer))]);
    const spki = der(SEQUENCE, Buffer.concat([this.#algorithm, der(BIT_STRING, value)]));
    const publicKey = createPublicKey({ key: spki, type: 'spki', format: 'der' });
    return padded(diffieHellman({ privateKey: this.#privateKey, publicKey }), this.#bytes);
  }
}

/** `value` in exactly `bytes` bytes: zeros are put in front, or taken away there. */
function padded(value: Buffer, bytes: number): Buffer {
  const missing = bytes - value.length;
  return missing >= 0 ? Buffer.concat([Buffer.alloc(missing), value]) : value.subarray(-missing);
}

/** A positive number as DER wants it: no more zeros in front than the one that says that it is not negative. */
function shortest(value: Buffer): Buffer {
  const first = value.findIndex((byte) => byte !== 0);
  const significant = value.subarray(first);
  return value[first] < 0x80 ? significant : Buffer.concat([Buffer.of(0), significant]);
}

/** An element of DER whose content takes less than 64 KiB. */
function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const header = length < 0x80 ? [tag, length] : [tag, 0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from(header), content]);
}

/** Where the content of the element at the start of `buffer` begins, and how long it is. */
function measure(buffer: Buffer): { readonly start: number; readonly length: number } {
  const first = buffer.readUInt8(1);
  if (first < 0x80) return { start: 2, length: first };
  const lengthBytes = first & 0x7f;
  return { start: 2 + lengthBytes, length: buffer.readUIntBE(2, lengthBytes) };
}

function contentOf(buffer: Buffer): Buffer {
  const { start, length } = measure(buffer);
  return buffer.subarray(start, start + length);
}

function lengthOf(buffer: Buffer): number {
  const { start, length } = measure(buffer);
  return start + length;
}
