/** Hashes and Diffie-Hellman groups of DH-HMAC-CHAP (NVMe base specification 2.0 §8.13.5.4; RFC 7919). */

import { createHash, createHmac } from 'node:crypto';
import { RoceError } from 'rocev2/internal/core';
import { FiniteFieldKeys } from './finite-field-keys.js';

export interface DhchapHash {
  readonly id: number;
  readonly name: 'sha256' | 'sha384' | 'sha512';
  readonly bytes: number;
}

export const DHCHAP_HASHES: readonly DhchapHash[] = [
  { id: 3, name: 'sha512', bytes: 64 },
  { id: 2, name: 'sha384', bytes: 48 },
  { id: 1, name: 'sha256', bytes: 32 },
];

export function hashById(id: number): DhchapHash | undefined {
  return DHCHAP_HASHES.find((hash) => hash.id === id);
}

export interface DhchapGroup {
  readonly id: number;
  readonly bits: number;
  /** What the formula of RFC 7919 adds. */
  readonly offset: number;
}

/**
 * In order of preference: the first is strong enough and the cheapest. Without a group an eavesdropper can try
 * passwords offline.
 */
export const DHCHAP_GROUPS: readonly DhchapGroup[] = [
  { id: 1, bits: 2048, offset: 560_316 },
  { id: 2, bits: 3072, offset: 2_625_351 },
  { id: 3, bits: 4096, offset: 5_736_041 },
  { id: 4, bits: 6144, offset: 15_705_020 },
  { id: 5, bits: 8192, offset: 10_965_728 },
  { id: 0, bits: 0, offset: 0 },
];

/**
 * Groups that a target takes part in. A host that has proved nothing chooses among them, and costs the event loop 3 ms
 * with 2048 bits, 8 ms with 3072, 120 ms with 8192.
 */
export const TARGET_GROUPS: readonly DhchapGroup[] = DHCHAP_GROUPS.filter(({ bits }) => bits <= 3072);

const primes = new Map<number, Buffer>();

/**
 * The prime of a group that has one: 2^b - 2^(b-64) + (floor(2^(b-130) e) + offset) 2^64 - 1 (RFC 7919, appendix A).
 */
export function primeOf({ bits, offset }: DhchapGroup): Buffer {
  let prime = primes.get(bits);
  if (prime === undefined) {
    const b = BigInt(bits);
    let e = 0n;
    for (let term = 1n << b, k = 1n; term > 0n; term /= k, k++) e += term; // 2^b e; its last bits are cut off below.
    const value = (1n << b) - (1n << (b - 64n)) + (((e >> 130n) + BigInt(offset)) << 64n) - 1n;
    prime = Buffer.from(value.toString(16), 'hex');
    primes.set(bits, prime);
  }
  return prime;
}

export class DhchapKeyPair {
  readonly publicValue: Buffer;
  readonly #prime: Buffer | undefined;
  readonly #keys: FiniteFieldKeys | undefined;

  constructor(group: DhchapGroup) {
    if (group.bits === 0) {
      this.publicValue = Buffer.alloc(0);
      return;
    }
    this.#prime = primeOf(group);
    this.#keys = new FiniteFieldKeys(this.#prime);
    this.publicValue = this.#keys.publicValue;
  }

  /** Throws ERR_ROCE_MISMATCH for a public value that none can have (RFC 7919 §5.1). */
  secretWith(peer: Buffer): Buffer | undefined {
    if (this.#keys === undefined || this.#prime === undefined) return undefined;
    const most = Buffer.from(this.#prime);
    most[most.length - 1] -= 2; // An odd number that ends in 0xff: no borrow.
    const least = Buffer.alloc(most.length);
    least[least.length - 1] = 2;
    const isPossible = peer.length === most.length && peer.compare(least) >= 0 && peer.compare(most) <= 0;
    if (!isPossible) throw new RoceError('ERR_ROCE_MISMATCH', 'the public value is not in the group');
    return this.#keys.secretWith(peer);
  }
}

export interface ResponseInput {
  readonly hash: DhchapHash;
  readonly key: Buffer;
  readonly challenge: Buffer;
  readonly secret: Buffer | undefined;
  readonly sequence: number;
  readonly transaction: number;
  readonly role: 'HostHost' | 'Controller';
  readonly own: string;
  readonly other: string;
}

export function respond(input: ResponseInput): Buffer {
  const { hash, key, challenge, secret, sequence, transaction, role, own, other } = input;
  const augmented =
    secret === undefined
      ? challenge
      : createHmac(hash.name, createHash(hash.name).update(secret).digest()).update(challenge).digest();
  const numbers = Buffer.alloc(7); // The last byte is SC_C: no secure channel.
  numbers.writeUInt32LE(sequence, 0);
  numbers.writeUInt16LE(transaction, 4);
  return createHmac(hash.name, key)
    .update(augmented)
    .update(numbers)
    .update(role)
    .update(own)
    .update(Buffer.alloc(1))
    .update(other)
    .digest();
}
