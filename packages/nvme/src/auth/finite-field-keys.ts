/**
 * Finite-field Diffie-Hellman through OpenSSL's key objects. `createDiffieHellman` tests the prime each time since
 * OpenSSL 3.5 (Node 24): a second for 2048 bits, minutes for 8192. Key objects use DER public values (X.690; RFC 3279
 * §2.3.3).
 */

import { createPublicKey, diffieHellman, generateKeyPairSync, type KeyObject } from 'node:crypto';

const INTEGER = 0x02;
const BIT_STRING = 0x03;
const SEQUENCE = 0x30;
const NO_UNUSED_BITS = Buffer.of(0);
/** Node accepts a caller's prime; its types of version 20 lack that. */
const makeKeys = generateKeyPairSync as unknown as (
  type: 'dh',
  options: { readonly prime: Buffer; readonly generator: number },
) => { readonly privateKey: KeyObject; readonly publicKey: KeyObject };

export class FiniteFieldKeys {
  readonly publicValue: Buffer;
  readonly #privateKey: KeyObject;
  readonly #algorithm: Buffer;
  readonly #bytes: number;

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

  /** `peer`: the other's public value, from 2 to prime - 2. */
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

/** DER integers have no leading zeros, except one that keeps the sign positive. */
function shortest(value: Buffer): Buffer {
  const first = value.findIndex((byte) => byte !== 0);
  const significant = value.subarray(first);
  return value[first] < 0x80 ? significant : Buffer.concat([Buffer.of(0), significant]);
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const header = length < 0x80 ? [tag, length] : [tag, 0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from(header), content]);
}

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
