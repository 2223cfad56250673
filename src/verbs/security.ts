import { randomInt } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { checkOptions, type OptionNames, shown } from '../core/arguments.js';
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
 * `require`: every packet is authentic and encrypted, and peers that cannot take part are refused. `prefer`: the same
 * with peers that can, plain packets with others; an attacker on the path can pretend that a peer cannot. `off`: plain
 * packets.
 */
export type SecureMode = 'require' | 'prefer' | 'off';
export const SECURE_MODES: readonly SecureMode[] = ['require', 'prefer', 'off'];

/** A key that both ends have, and its name. */
export interface PreSharedKey {
  /** 1 to 128 bytes of UTF-8; identifies this end to the peer. */
  readonly identity: string;
  /** 16 to 64 random bytes. */
  readonly key: Uint8Array;
}

/** Credentials of a device: pre-shared keys, or a certificate. */
export interface SecureOptions {
  /** Default `require`. */
  readonly mode?: Exclude<SecureMode, 'off'> | undefined;
  /** Connections go out with the first; listeners take all of them. */
  readonly psk?: PreSharedKey | readonly PreSharedKey[] | undefined;
  /** Certificate of this end, and what leads to a root: PEM. Needs `key`, and `ca` for the peers. */
  readonly cert?: string | undefined;
  /** Private key of `cert`: PEM. */
  readonly key?: string | undefined;
  /** Roots of the certificates of peers: PEM. No other root is trusted. */
  readonly ca?: string | undefined;
  /**
   * Accepted peers, by identity of the key, or by common name or alternative name of the certificate. Default: all that
   * authenticate; the certificate of a server must then have the name or address that the client connects to.
   */
  readonly allow?: readonly string[] | undefined;
  /** The cipher of the packets; where the two ends differ, `aes-256-gcm` is used. Default `aes-128-gcm`. */
  readonly cipher?: PacketCipherName | undefined;
  /**
   * File that the secrets of packets are appended to, for decoding captures with `rocev2 decode --keys` (format:
   * docs/security.md). It is made with mode 0600. A symbolic link, a file of another user and one that others may read
   * are refused. Anyone with the file can read everything, and forge what the connections still send.
   */
  readonly keyLog?: string | undefined;
}

/** Security options of a listener or connection. */
export interface SecureTerms {
  /** Default: that of the device. A device that requires protection has no connection without. */
  readonly secure?: SecureMode | undefined;
  /** Peers that are let in, instead of those of the device. */
  readonly allow?: readonly string[] | undefined;
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

export interface Certificates {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

type KeyLogWriter = Pick<SecurePorts, 'appendToKeyLog' | 'keyLogLines'>;

export class DeviceSecurity {
  readonly mode: ProtectionMode;
  readonly keys: readonly PreSharedKey[];
  readonly certificates: Certificates | undefined;
  readonly allow: ReadonlySet<string> | undefined;
  readonly cipher: PacketCipherName;
  readonly keyLog: string | undefined;
  #keyLogWriter: KeyLogWriter | undefined;
  readonly #spis = new Set<number>();

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

  async beginKeyLog(writer: KeyLogWriter): Promise<void> {
    await writer.appendToKeyLog(this.keyLog!, '');
    this.#keyLogWriter = writer;
  }

  async logKeys(terms: AssociationTerms): Promise<void> {
    const writer = this.#keyLogWriter;
    if (writer !== undefined) await writer.appendToKeyLog(this.keyLog!, writer.keyLogLines(terms));
  }

  takeSpi(): number {
    for (;;) {
      const spi = randomInt(1, SPI_END);
      if (this.#spis.has(spi)) continue;
      this.#spis.add(spi);
      return spi;
    }
  }

  giveSpi(spi: number): void {
    this.#spis.delete(spi);
  }
}

export function checkSecureMode(option: string, mode: string, modes: readonly string[] = SECURE_MODES): void {
  checkName(option, mode, modes);
}

function checkName(option: string, name: string, names: readonly string[]): void {
  if (names.includes(name)) return;
  throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `${option} is ${shown(name)}`, namesHint(name, names, 'it is one of'));
}

function checkedKeys(keys: readonly PreSharedKey[]): readonly PreSharedKey[] {
  const identities = new Set<string>();
  for (const { identity, key } of keys) {
    const bytes = typeof identity === 'string' ? Buffer.byteLength(identity) : 0;
    if (bytes < 1 || bytes > IDENTITY_BYTES_MAX) {
      throw argumentError(`a psk needs an identity of 1 to ${IDENTITY_BYTES_MAX} bytes`);
    }
    if (!(key instanceof Uint8Array) || key.length < KEY_BYTES_MIN || key.length > KEY_BYTES_MAX) {
      throw argumentError(`the psk of '${identity}' needs a key of ${KEY_BYTES_MIN} to ${KEY_BYTES_MAX} bytes`);
    }
    if (identities.has(identity)) {
      throw new RoceError('ERR_ROCE_CONFLICT', `two keys have the identity '${identity}'`, 'an identity has one key');
    }
    identities.add(identity);
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
