/** How a device proves itself to peers, and which of them it trusts: what protects its connections (docs/security.md). */

import { randomInt } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { checkOptions, type OptionNames } from '../core/arguments.js';
import { namesHint } from '../core/did-you-mean.js';
import { RoceError } from '../core/errors.js';
import type { SecurePorts } from '../driver/secure-loader.js';
import {
  type AssociationTerms,
  PACKET_CIPHERS,
  type PacketCipherName,
  type ProtectionMode,
} from '../memory/ring/protection.js';

/**
 * `require`: every packet is authentic and encrypted, and whoever cannot take part is refused. `prefer`: the same with peers that can, plain packets with
 * others; an attacker on the path can pretend that a peer cannot. `off`: plain packets.
 */
export type SecureMode = 'require' | 'prefer' | 'off';
/** All of them. */
export const SECURE_MODES: readonly SecureMode[] = ['require', 'prefer', 'off'];

/** A key that both ends have, and the name it goes by. */
export interface PreSharedKey {
  /** 1 to 128 bytes of UTF-8; the peer knows this end by it. */
  readonly identity: string;
  /** 16 to 64 random bytes. */
  readonly key: Uint8Array;
}

/** Credentials of a device: pre-shared keys, or a certificate. */
export interface SecureOptions {
  /** Default `require`. */
  readonly mode?: Exclude<SecureMode, 'off'>;
  /** Connections go out with the first; listeners take all of them. */
  readonly psk?: PreSharedKey | readonly PreSharedKey[];
  /** Certificate of this end, and what leads to a root: PEM. Needs `key`, and `ca` for the peers. */
  readonly cert?: string;
  /** Private key of `cert`: PEM. */
  readonly key?: string;
  /** Roots of the certificates of peers: PEM. No other root is trusted. */
  readonly ca?: string;
  /**
   * Peers that are let in, by identity of the key, or by common name or alternative name of the certificate. Default: all that prove themselves; a server that is connected
   * to must then have a certificate of the name or address that it was dialled by.
   */
  readonly allow?: readonly string[];
  /** What packets are encrypted with; where the two ends differ, `aes-256-gcm` is used. Default `aes-128-gcm`. */
  readonly cipher?: PacketCipherName;
  /**
   * File that the secrets of packets are appended to, so that captures can be read: `rocev2 decode --keys` (docs/security.md has the form of the lines). It is made with mode 0600; one that
   * others may read is refused. Who has the file reads everything, and can forge what the connections still send.
   */
  readonly keyLog?: string;
}

/** What a listener or a connection may say beside its device. */
export interface SecureTerms {
  /** Default: what the device says. A device that requires protection has no connection without. */
  readonly secure?: SecureMode;
  /** Peers that are let in, instead of those of the device. */
  readonly allow?: readonly string[];
}

const OPTIONS: OptionNames<SecureOptions> = {
  mode: true,
  psk: true,
  cert: true,
  key: true,
  ca: true,
  allow: true,
  cipher: true,
  keyLog: true,
};
const IDENTITY_BYTES_MAX = 128;
const KEY_BYTES_MIN = 16;
const KEY_BYTES_MAX = 64;
const SPI_END = 2 ** 31;

/** PEM texts. */
export interface Certificates {
  /** Of this end. */
  readonly cert: string;
  /** Its private key. */
  readonly key: string;
  /** Roots of peers. */
  readonly ca: string;
}

/** Forms the lines of a key log, and writes them. */
type KeyLogWriter = Pick<SecurePorts, 'appendToKeyLog' | 'keyLogLines'>;

/** The credentials of an open device, checked. */
export class DeviceSecurity {
  /** Whether peers that cannot take part get plain packets. */
  readonly mode: ProtectionMode;
  /** None where the device has a certificate. */
  readonly keys: readonly PreSharedKey[];
  /** Undefined where it has keys. */
  readonly certificates: Certificates | undefined;
  /** Undefined: everybody who proves himself. */
  readonly allow: ReadonlySet<string> | undefined;
  /** What this end asks for. */
  readonly cipher: PacketCipherName;
  /** File for the secrets of packets. */
  readonly keyLog: string | undefined;
  /** Loaded for a key log only. */
  #keyLogWriter: KeyLogWriter | undefined;
  readonly #spis = new Set<number>();

  /** Throws ERR_ROCE_INVALID_ARGUMENT, ERR_ROCE_UNKNOWN_NAME or ERR_ROCE_CONFLICT, saying what is missing. */
  constructor(options: SecureOptions) {
    checkOptions('secure of openDevice', options, OPTIONS);
    const { mode = 'require', psk, allow, cipher = 'aes-128-gcm', keyLog } = options;
    checkSecureMode('secure.mode', mode, ['require', 'prefer']);
    checkName('secure.cipher', cipher, PACKET_CIPHERS);
    this.mode = mode;
    this.cipher = cipher;
    this.keys = psk === undefined ? [] : checkedKeys(Array.isArray(psk) ? psk : [psk]);
    this.certificates = certificatesOf(options);
    this.allow = allow === undefined ? undefined : checkedNames(allow);
    if (keyLog !== undefined && (typeof keyLog !== 'string' || keyLog === ''))
      throw argumentError('keyLog needs a file');
    this.keyLog = keyLog;
    if (this.keys.length > 0 && this.certificates !== undefined) {
      throw new RoceError(
        'ERR_ROCE_CONFLICT',
        'secure has keys and a certificate',
        'one way to prove oneself is enough',
      );
    }
    if (this.keys.length === 0 && this.certificates === undefined) {
      throw new RoceError(
        'ERR_ROCE_INVALID_ARGUMENT',
        'secure has no credentials',
        'give psk, or cert, key and ca: docs/security.md',
      );
    }
  }

  /** Makes the key log. Rejects with ERR_ROCE_IO where it cannot be written, or others may read it. */
  async beginKeyLog(writer: KeyLogWriter): Promise<void> {
    await writer.appendToKeyLog(this.keyLog!, '');
    this.#keyLogWriter = writer;
  }

  /** Appends the secrets of an association to the key log, if there is one. Rejects as {@link DeviceSecurity.beginKeyLog} does. */
  async logKeys(terms: AssociationTerms): Promise<void> {
    const writer = this.#keyLogWriter;
    if (writer !== undefined) await writer.appendToKeyLog(this.keyLog!, writer.keyLogLines(terms));
  }

  /** A number for an association that no other one of the device has. */
  takeSpi(): number {
    for (;;) {
      const spi = randomInt(1, SPI_END);
      if (this.#spis.has(spi)) continue;
      this.#spis.add(spi);
      return spi;
    }
  }

  /** Gives it back. */
  giveSpi(spi: number): void {
    this.#spis.delete(spi);
  }
}

/** Throws ERR_ROCE_UNKNOWN_NAME for a mode that there is not. */
export function checkSecureMode(option: string, mode: string, modes: readonly string[] = SECURE_MODES): void {
  checkName(option, mode, modes);
}

function checkName(option: string, name: string, names: readonly string[]): void {
  if (names.includes(name)) return;
  throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `${option} is '${name}'`, namesHint(name, names, 'it is one of'));
}

function checkedKeys(keys: readonly PreSharedKey[]): readonly PreSharedKey[] {
  for (const { identity, key } of keys) {
    const bytes = typeof identity === 'string' ? Buffer.byteLength(identity) : 0;
    if (bytes < 1 || bytes > IDENTITY_BYTES_MAX) {
      throw argumentError(`a psk needs an identity of 1 to ${IDENTITY_BYTES_MAX} bytes`);
    }
    if (!(key instanceof Uint8Array) || key.length < KEY_BYTES_MIN || key.length > KEY_BYTES_MAX) {
      throw argumentError(`the psk of '${identity}' needs a key of ${KEY_BYTES_MIN} to ${KEY_BYTES_MAX} bytes`);
    }
  }
  return keys;
}

function certificatesOf({ cert, key, ca }: SecureOptions): Certificates | undefined {
  if (cert === undefined && key === undefined && ca === undefined) return undefined;
  if (cert === undefined || key === undefined || ca === undefined) {
    throw argumentError('certificates need cert, key and ca, each as the text of a PEM file');
  }
  try {
    createSecureContext({ cert, key, ca });
  } catch (cause) {
    throw argumentError(`the certificate cannot be used: ${(cause as Error).message}`);
  }
  return { cert, key, ca };
}

function checkedNames(names: readonly string[]): ReadonlySet<string> {
  if (!Array.isArray(names) || names.length === 0 || names.some((name) => typeof name !== 'string')) {
    throw argumentError('allow needs at least one name');
  }
  return new Set(names);
}

function argumentError(text: string): RoceError {
  return new RoceError('ERR_ROCE_INVALID_ARGUMENT', text);
}
