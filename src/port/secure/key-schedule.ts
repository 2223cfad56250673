/**
 * The keys of one direction of an association. The first secret comes from the TLS exporter (RFC 8446 §7.5); each further one from the one before by HKDF
 * (RFC 5869), which does not run backwards: who steals a secret reads nothing that an earlier key protected.
 */

import { hkdfSync } from 'node:crypto';

/** Of a secret. */
const SECRET_BYTES = 32;
const NO_SALT = new Uint8Array(0);

function derive(secret: Uint8Array, label: string, bytes: number): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, NO_SALT, label, bytes));
}

/** Keys one after another. */
export class KeySchedule {
  readonly #keyBytes: number;
  #secret: Uint8Array;

  /** `secret`: 32 bytes that both ends know and nobody else. `keyBytes`: 16 or 32. */
  constructor(secret: Uint8Array, keyBytes: number) {
    this.#secret = secret;
    this.#keyBytes = keyBytes;
  }

  /** The next key; the first call gives the first. */
  next(): Uint8Array {
    const key = derive(this.#secret, 'rocev2 psp key', this.#keyBytes);
    this.#secret = derive(this.#secret, 'rocev2 psp next', SECRET_BYTES);
    return key;
  }
}
