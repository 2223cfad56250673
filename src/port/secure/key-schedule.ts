/**
 * The keys of one direction: the first secret from the TLS exporter (RFC 8446 §7.5), each further one by HKDF (RFC
 * 5869), which is one-way, so a stolen secret does not open earlier packets.
 */

import { hkdfSync } from 'node:crypto';

const SECRET_BYTES = 32;
const NO_SALT = new Uint8Array(0);

function derive(secret: Uint8Array, label: string, bytes: number): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, NO_SALT, label, bytes));
}

export class KeySchedule {
  readonly #keyBytes: number;
  #secret: Uint8Array;

  constructor(secret: Uint8Array, keyBytes: number) {
    this.#secret = secret;
    this.#keyBytes = keyBytes;
  }

  next(): Uint8Array {
    const key = derive(this.#secret, 'rocev2 psp key', this.#keyBytes);
    this.#secret = derive(this.#secret, 'rocev2 psp next', SECRET_BYTES);
    return key;
  }
}
