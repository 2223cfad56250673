/**
 * AES-GCM by Intel's libipsec-mb through koffi, in half of OpenSSL's time or less. Each processor kind has its own
 * symbols, chosen by the kernel's CPU flags and verified by the self-test. On decryption the computed tag is compared
 * here.
 */

import { readFileSync } from 'node:fs';
import { RoceError } from '../../core/errors.js';
import { koffiPackage, libC } from '../../dgram-ext/libc.js';
import { copyPspNonce, PSP_ICV_BYTES } from '../../packet/psp.js';
import { type CipherImplementation, KEY_BYTES_128, type PacketCipher } from '../../port/secure/packet-cipher.js';
import { type KeptAddresses, keptAddresses, threadAddresses } from './kept-addresses.js';

/**
 * The library's name since its version 1.0 (Debian 12: 1.3). Later major versions have another interface for each
 * processor.
 */
const LIBRARY = 'libIPSec_MB.so.1';

/**
 * CPU flags that each variant needs, as named in `/proc/cpuinfo` (the library's IMB_CPUFLAGS_* for AES-GCM), the widest
 * first.
 */
const SSE = ['sse4_2', 'aes', 'pclmulqdq'];
const AVX2 = [...SSE, 'avx', 'avx2', 'bmi2'];
const AVX512 = [...AVX2, 'avx512f', 'avx512dq', 'avx512cd', 'avx512bw', 'avx512vl'];
const VARIANTS: ReadonlyArray<readonly [string, readonly string[]]> = [
  ['vaes_avx512', [...AVX512, 'vaes', 'vpclmulqdq', 'gfni', 'avx512ifma']],
  ['avx512', AVX512],
  ['avx_gen4', AVX2],
  ['avx_gen2', [...SSE, 'avx']],
  ['sse', SSE],
];

export function variantFor(flags: ReadonlySet<string>): string | undefined {
  return VARIANTS.find(([, needed]) => needed.every((flag) => flags.has(flag)))?.[0];
}

export function processorFlags(file = '/proc/cpuinfo'): ReadonlySet<string> {
  try {
    const [, line] = /^flags\s*:(.*)$/m.exec(readFileSync(file, 'latin1')) ?? [];
    return new Set(line?.trim().split(/\s+/));
  } catch {
    return new Set();
  }
}

/**
 * `aes_gcm_enc_*` and `aes_gcm_dec_*` (intel-ipsec-mb.h): key, context, out, in, bytes, nonce, additional data, its
 * bytes, tag, its bytes.
 */
type Gcm = (
  key: number,
  context: number,
  out: number,
  text: number,
  textBytes: number,
  nonce: number,
  clear: number,
  clearBytes: number,
  tag: number,
  tagBytes: number,
) => void;

interface Functions {
  readonly prepare: (key: number, expanded: number) => void;
  readonly encrypt: Gcm;
  readonly decrypt: Gcm;
}

/**
 * Memory layout of a cipher: `struct gcm_key_data` (1,008 bytes, in whole lines of 64), `struct gcm_context_data`
 * (88), nonce, tag, key.
 */
const CONTEXT_AT = 1024;
const NONCE_AT = CONTEXT_AT + 128;
const TAG_AT = NONCE_AT + 16;
const KEY_AT = TAG_AT + 16;
const MEMORY_BYTES = KEY_AT + 32;
const LINE_BYTES = 64;
const [EXPANDED, CONTEXT, NONCE, TAG, KEY] = [0, 1, 2, 3, 4];

export function ipsecMb(variant = variantFor(processorFlags())): CipherImplementation {
  const lib = libC();
  if (typeof lib === 'string') throw new RoceError('ERR_ROCE_UNSUPPORTED', `${LIBRARY} cannot be called: ${lib}`);
  if (variant === undefined) {
    throw new RoceError('ERR_ROCE_UNSUPPORTED', `${LIBRARY} has no AES-GCM for this processor`);
  }
  const loaded = koffiPackage().load(LIBRARY);
  const gcm = (direction: string, bits: number): Gcm =>
    loaded.func(
      `void aes_gcm_${direction}_${bits}_${variant}(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uint64_t, uintptr_t, uintptr_t, uint64_t, uintptr_t, uint64_t)`,
    );
  const functions = (bits: number): Functions => ({
    prepare: loaded.func(`void aes_gcm_pre_${bits}_${variant}(uintptr_t, uintptr_t)`),
    encrypt: gcm('enc', bits),
    decrypt: gcm('dec', bits),
  });
  const [of128, of256] = [functions(128), functions(256)];
  const addresses = threadAddresses();
  return {
    name: `ipsec-mb (${variant})`,
    make: (key) => new IpsecMbCipher(key.length === KEY_BYTES_128 ? of128 : of256, addresses, key),
  };
}

class IpsecMbCipher implements PacketCipher {
  readonly #encrypt: Gcm;
  readonly #decrypt: Gcm;
  readonly #addresses: KeptAddresses;
  readonly #memory: Uint8Array;
  readonly #nonce: Uint8Array;
  readonly #tag: Uint8Array;
  readonly #own: ReadonlyArray<number | undefined>;

  constructor({ prepare, encrypt, decrypt }: Functions, addresses: KeptAddresses, key: Uint8Array) {
    this.#encrypt = encrypt;
    this.#decrypt = decrypt;
    this.#addresses = addresses;
    this.#memory = new Uint8Array(new ArrayBuffer(MEMORY_BYTES + LINE_BYTES));
    const start = addresses.start(this.#memory);
    const skipped = -start & (LINE_BYTES - 1);
    this.#own = keptAddresses(start + skipped, [0, CONTEXT_AT, NONCE_AT, TAG_AT, KEY_AT]);
    this.#nonce = this.#memory.subarray(skipped + NONCE_AT, skipped + TAG_AT);
    this.#tag = this.#memory.subarray(skipped + TAG_AT, skipped + KEY_AT);
    this.#memory.set(key, skipped + KEY_AT);
    prepare(this.#own[KEY]!, this.#own[EXPANDED]!);
    key.fill(0);
  }

  seal(
    text: Uint8Array,
    textOffset: number,
    textBytes: number,
    packet: Uint8Array,
    offset: number,
    clearBytes: number,
  ): void {
    const own = this.#own;
    const addresses = this.#addresses;
    const end = offset + clearBytes + textBytes;
    copyPspNonce(packet, offset, this.#nonce);
    this.#encrypt(
      own[EXPANDED]!,
      own[CONTEXT]!,
      addresses.of(packet, offset + clearBytes),
      addresses.of(text, textOffset),
      textBytes,
      own[NONCE]!,
      addresses.of(packet, offset),
      clearBytes,
      own[TAG]!,
      PSP_ICV_BYTES,
    );
    const tag = this.#tag;
    for (let i = 0; i < PSP_ICV_BYTES; i++) packet[end + i] = tag[i];
  }

  open(
    packet: Uint8Array,
    offset: number,
    clearBytes: number,
    textBytes: number,
    text: Uint8Array,
    textOffset: number,
  ): boolean {
    const own = this.#own;
    const addresses = this.#addresses;
    const end = offset + clearBytes + textBytes;
    copyPspNonce(packet, offset, this.#nonce);
    this.#decrypt(
      own[EXPANDED]!,
      own[CONTEXT]!,
      addresses.of(text, textOffset),
      addresses.of(packet, offset + clearBytes),
      textBytes,
      own[NONCE]!,
      addresses.of(packet, offset),
      clearBytes,
      own[TAG]!,
      PSP_ICV_BYTES,
    );
    return isSameTag(this.#tag, packet, end);
  }

  close(): void {
    this.#memory.fill(0);
  }
}

/** Constant time, against guessing a tag byte by byte. */
export function isSameTag(tag: Uint8Array, packet: Uint8Array, offset: number): boolean {
  let difference = 0;
  for (let i = 0; i < PSP_ICV_BYTES; i++) difference |= tag[i] ^ packet[offset + i];
  return difference === 0;
}
