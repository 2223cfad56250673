/**
 * Pre-shared keys of NVMe/TCP over TLS 1.3, `NVMeTLSkey-1:HASH:BASE64:`, and the identity and key derived for each host
 * and subsystem (NVMe TCP transport specification 1.1 §3.6.1; libnvme src/nvme/linux.c).
 */

import { createHmac, hkdfSync } from 'node:crypto';
import { crc32, RoceError } from 'rocev2/internal/core';

const FORM = /^NVMeTLSkey-1:0([0-2]):([A-Za-z0-9+/]+={0,2}):$/;
const KEY_BYTES = 32;
const SHA384_KEY_BYTES = 48;
const CRC_BYTES = 4;
const HASH = 'sha256';
const HASH_ID = '01';
/** OpenSSL's PSK_MAX_IDENTITY_LEN, and the context of HKDF-Expand-Label has less than 256. */
const IDENTITY_BYTES_MAX = 255;

export interface TlsNames {
  readonly hostNqn: string;
  readonly subsystemNqn: string;
}

export interface TlsPsk {
  readonly identity: string;
  readonly psk: Buffer;
}

/**
 * Version 1 has a digest of the key in its identity, version 0 has not. Those of libnvme 1.13, which Debian 13 has, put
 * no lengths before label and context of HKDF-Expand-Label, and write its own length with the low byte first.
 */
export const TLS_DERIVATIONS = ['1', '1-libnvme', '0-libnvme', '0'] as const;

export type TlsDerivation = (typeof TLS_DERIVATIONS)[number];

export class NvmeTlsKey {
  readonly #key: Buffer;
  readonly #isTransformed: boolean;

  private constructor(key: Buffer, isTransformed: boolean) {
    this.#key = key;
    this.#isTransformed = isTransformed;
  }

  static parse(text: string): NvmeTlsKey {
    const match = FORM.exec(text.trim());
    if (match === null) throw malformed('is not of the form NVMeTLSkey-1:HASH:BASE64:');
    const bytes = Buffer.from(match[2], 'base64');
    const key = bytes.subarray(0, -CRC_BYTES);
    if (key.length !== KEY_BYTES && key.length !== SHA384_KEY_BYTES) throw malformed('does not have 32 or 48 bytes');
    if (bytes.readUInt32LE(key.length) !== crc32(key)) throw malformed('does not match its checksum');
    if (match[1] === '2' || key.length === SHA384_KEY_BYTES) {
      const hint = 'make one of 32 bytes: nvme gen-tls-key --hmac=1';
      throw new RoceError('ERR_ROCE_UNSUPPORTED', 'node:tls takes no pre-shared keys of SHA-384', hint);
    }
    return new NvmeTlsKey(Buffer.from(key), match[1] !== '0');
  }

  static format(key: Buffer, isTransformed = true): string {
    const sum = Buffer.alloc(CRC_BYTES);
    sum.writeUInt32LE(crc32(key));
    return `NVMeTLSkey-1:0${isTransformed ? 1 : 0}:${Buffer.concat([key, sum]).toString('base64')}:`;
  }

  pskOf({ hostNqn, subsystemNqn }: TlsNames, derivation: TlsDerivation = '1'): TlsPsk {
    const expand = derivation.endsWith('libnvme') ? expandAsLibnvme : expandLabel;
    const retained = this.#isTransformed ? expand(this.#key, 'HostNQN', hostNqn) : this.#key;
    const names = `${hostNqn} ${subsystemNqn}`;
    const digest = createHmac(HASH, retained).update(`${names} NVMe-over-Fabrics`).digest('base64');
    const isFirst = derivation.startsWith('0');
    const identity = isFirst ? `NVMe0R${HASH_ID} ${names}` : `NVMe1R${HASH_ID} ${names} ${digest}`;
    if (Buffer.byteLength(identity) > IDENTITY_BYTES_MAX) {
      const text = `${hostNqn} and ${subsystemNqn} are too long for TLS: their identity has more than ${IDENTITY_BYTES_MAX} bytes`;
      throw new RoceError('ERR_ROCE_LIMIT', text, 'take shorter names');
    }
    const context = isFirst ? identity : `${HASH_ID} ${digest}`;
    return { identity, psk: expand(retained, 'nvme-tls-psk', context) };
  }
}

/** HKDF-Expand-Label of RFC 8446 §7.1 over HKDF-Extract(0, key): 32 bytes. */
function expandLabel(key: Buffer, label: string, context: string): Buffer {
  const name = Buffer.from(`tls13 ${label}`);
  const about = Buffer.from(context);
  const info = Buffer.concat([Buffer.of(0, KEY_BYTES, name.length), name, Buffer.of(about.length), about]);
  return Buffer.from(hkdfSync(HASH, key, '', info, KEY_BYTES));
}

/** What libnvme 1.13 takes for it. */
function expandAsLibnvme(key: Buffer, label: string, context: string): Buffer {
  const info = Buffer.concat([Buffer.of(KEY_BYTES, 0), Buffer.from(`tls13 ${label}${context}`)]);
  return Buffer.from(hkdfSync(HASH, key, '', info, KEY_BYTES));
}

function malformed(what: string): RoceError {
  return new RoceError('ERR_ROCE_MALFORMED', `the TLS key ${what}`, 'make one by nvme gen-tls-key');
}
