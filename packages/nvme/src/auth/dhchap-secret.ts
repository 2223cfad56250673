/**
 * Secrets of DH-HMAC-CHAP as administrators write them: `DHHC-1:HASH:BASE64:` (NVMe base specification 2.0 §8.13.5.8).
 */

import { createHmac } from 'node:crypto';
import { crc32, RoceError } from 'rocev2/internal/core';
import { DHCHAP_HASHES, type DhchapHash, hashById } from './dhchap-algorithms.js';

const FORM = /^DHHC-1:0([0-3]):([A-Za-z0-9+/]+={0,2}):$/;
const KEY_BYTES: readonly number[] = [32, 48, 64];
const CRC_BYTES = 4;
const LABEL = 'NVMe-over-Fabrics';

/** It does not show itself in messages. */
export class DhchapSecret {
  readonly #key: Buffer;
  readonly #hash: DhchapHash | undefined;

  private constructor(key: Buffer, hash: DhchapHash | undefined) {
    this.#key = key;
    this.#hash = hash;
  }

  static parse(text: string): DhchapSecret {
    const match = FORM.exec(text.trim());
    if (match === null) throw malformed('is not of the form DHHC-1:HASH:BASE64:');
    const bytes = Buffer.from(match[2], 'base64');
    const key = bytes.subarray(0, -CRC_BYTES);
    if (!KEY_BYTES.includes(key.length)) throw malformed('does not have 32, 48 or 64 bytes');
    if (bytes.readUInt32LE(key.length) !== crc32(key)) throw malformed('does not match its checksum');
    const hash = match[1] === '0' ? undefined : hashById(Number(match[1]));
    return new DhchapSecret(Buffer.from(key), hash);
  }

  static format(key: Buffer, hash: 'none' | DhchapHash['name'] = 'none'): string {
    const id = hash === 'none' ? 0 : DHCHAP_HASHES.find(({ name }) => name === hash)!.id;
    const sum = Buffer.alloc(CRC_BYTES);
    sum.writeUInt32LE(crc32(key));
    return `DHHC-1:0${id}:${Buffer.concat([key, sum]).toString('base64')}:`;
  }

  keyOf(nqn: string): Buffer {
    if (this.#hash === undefined) return this.#key;
    return createHmac(this.#hash.name, this.#key).update(nqn).update(LABEL).digest();
  }
}

function malformed(what: string): RoceError {
  return new RoceError('ERR_ROCE_MALFORMED', `the DH-HMAC-CHAP secret ${what}`, 'make one by nvme gen-dhchap-key');
}
