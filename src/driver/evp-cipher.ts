/**
 * AES-GCM by OpenSSL's EVP functions, which the node executable exports and koffi calls: one context a key, kept, so that a packet costs the cipher and
 * little else, and allocates nothing. node:crypto makes an object for each packet, which takes longer than to encrypt 4 KiB.
 */

import { koffiPackage } from '../dgram-ext/libc.js';
import { copyPspNonce, PSP_ICV_BYTES } from '../packet/psp.js';
import { type CipherMaker, KEY_BYTES_128, NodeCipher, type PacketCipher } from '../secure/packet-cipher.js';

/** Functions of OpenSSL 3 as in its manual pages; pointers are numbers. */
interface Evp {
  newContext(): number;
  freeContext(context: number): void;
  aes128Gcm(): number;
  aes256Gcm(): number;
  encryptInit(context: number, type: number, engine: number, key: number, iv: number): number;
  encryptUpdate(context: number, out: number, outBytes: number, text: number, bytes: number): number;
  encryptFinal(context: number, out: number, outBytes: number): number;
  decryptInit(context: number, type: number, engine: number, key: number, iv: number): number;
  decryptUpdate(context: number, out: number, outBytes: number, text: number, bytes: number): number;
  decryptFinal(context: number, out: number, outBytes: number): number;
  control(context: number, command: number, argument: number, pointer: number): number;
  addressOf(bytes: Uint8Array): number;
}

const EVP_CTRL_AEAD_GET_TAG = 0x10;
const EVP_CTRL_AEAD_SET_TAG = 0x11;
/** Of the scratch: nonce, a length that OpenSSL writes, the last block. */
const OUT_BYTES_AT = 16;
const LAST_BLOCK_AT = 32;
const SCRATCH_BYTES = 64;

let evp: Evp | string | undefined;

function load(): Evp | string {
  try {
    const lib = koffiPackage().load(null);
    const memcpy = lib.func('uintptr_t memcpy(void *, void *, size_t)');
    const direction = (name: 'Encrypt' | 'Decrypt') => ({
      init: lib.func(`int EVP_${name}Init_ex(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t)`),
      update: lib.func(`int EVP_${name}Update(uintptr_t, uintptr_t, uintptr_t, uintptr_t, int)`),
      final: lib.func(`int EVP_${name}Final_ex(uintptr_t, uintptr_t, uintptr_t)`),
    });
    const encrypt = direction('Encrypt');
    const decrypt = direction('Decrypt');
    return {
      newContext: lib.func('uintptr_t EVP_CIPHER_CTX_new()') as Evp['newContext'],
      freeContext: lib.func('void EVP_CIPHER_CTX_free(uintptr_t)') as Evp['freeContext'],
      aes128Gcm: lib.func('uintptr_t EVP_aes_128_gcm()') as Evp['aes128Gcm'],
      aes256Gcm: lib.func('uintptr_t EVP_aes_256_gcm()') as Evp['aes256Gcm'],
      encryptInit: encrypt.init as Evp['encryptInit'],
      encryptUpdate: encrypt.update as Evp['encryptUpdate'],
      encryptFinal: encrypt.final as Evp['encryptFinal'],
      decryptInit: decrypt.init as Evp['decryptInit'],
      decryptUpdate: decrypt.update as Evp['decryptUpdate'],
      decryptFinal: decrypt.final as Evp['decryptFinal'],
      control: lib.func('int EVP_CIPHER_CTX_ctrl(uintptr_t, int, int, uintptr_t)') as Evp['control'],
      addressOf: (bytes) => memcpy(bytes, bytes, 0) as number,
    };
  } catch (error) {
    return (error as Error).message;
  }
}

/** Why the functions cannot be called here; undefined where they can. */
export function evpUnavailable(): string | undefined {
  evp ??= load();
  return typeof evp === 'string' ? evp : undefined;
}

/** The fastest cipher that there is here. */
export const fastestCipher: CipherMaker = (key) => {
  evp ??= load();
  return typeof evp === 'string' ? new NodeCipher(key) : new EvpCipher(evp, key);
};

/** The address of the array that was asked for last: packets one after another stand in the same slab. */
class LastAddress {
  readonly #evp: Evp;
  #bytes: Uint8Array | undefined;
  #address = 0;

  constructor(evp: Evp) {
    this.#evp = evp;
  }

  of(bytes: Uint8Array): number {
    if (bytes !== this.#bytes) {
      this.#address = this.#evp.addressOf(bytes);
      this.#bytes = bytes;
    }
    return this.#address;
  }
}

class EvpCipher implements PacketCipher {
  readonly #evp: Evp;
  readonly #packets: LastAddress;
  readonly #texts: LastAddress;
  /** Memory that does not move, which the numbers below point into. */
  readonly #scratch = new Uint8Array(new ArrayBuffer(SCRATCH_BYTES));
  readonly #nonceAt: number;
  readonly #outBytesAt: number;
  readonly #lastBlockAt: number;
  /** A context keeps its direction. An association uses one of them. */
  #sealing = 0;
  #opening = 0;
  readonly #key: Uint8Array;

  constructor(evp: Evp, key: Uint8Array) {
    this.#evp = evp;
    this.#packets = new LastAddress(evp);
    this.#texts = new LastAddress(evp);
    this.#nonceAt = evp.addressOf(this.#scratch);
    this.#outBytesAt = this.#nonceAt + OUT_BYTES_AT;
    this.#lastBlockAt = this.#nonceAt + LAST_BLOCK_AT;
    this.#key = new Uint8Array(new ArrayBuffer(key.length));
    this.#key.set(key);
  }

  seal(
    text: Uint8Array,
    textOffset: number,
    textBytes: number,
    packet: Uint8Array,
    offset: number,
    clearBytes: number,
  ): void {
    const evp = this.#evp;
    if (this.#sealing === 0) this.#sealing = this.#context('encryptInit');
    const context = this.#sealing;
    const start = this.#packets.of(packet) + offset;
    const out = start + clearBytes;
    copyPspNonce(packet, offset, this.#scratch);
    let isDone = evp.encryptInit(context, 0, 0, 0, this.#nonceAt);
    isDone &= evp.encryptUpdate(context, 0, this.#outBytesAt, start, clearBytes);
    if (textBytes > 0) {
      isDone &= evp.encryptUpdate(context, out, this.#outBytesAt, this.#texts.of(text) + textOffset, textBytes);
    }
    isDone &= evp.encryptFinal(context, this.#lastBlockAt, this.#outBytesAt);
    isDone &= evp.control(context, EVP_CTRL_AEAD_GET_TAG, PSP_ICV_BYTES, out + textBytes);
    // What could not be encrypted must not leave as it is.
    if (isDone !== 1) throw new Error('OpenSSL could not encrypt a packet');
  }

  open(
    packet: Uint8Array,
    offset: number,
    clearBytes: number,
    textBytes: number,
    text: Uint8Array,
    textOffset: number,
  ): boolean {
    const evp = this.#evp;
    if (this.#opening === 0) this.#opening = this.#context('decryptInit');
    const context = this.#opening;
    const start = this.#packets.of(packet) + offset;
    const ciphertext = start + clearBytes;
    copyPspNonce(packet, offset, this.#scratch);
    let isDone = evp.decryptInit(context, 0, 0, 0, this.#nonceAt);
    isDone &= evp.control(context, EVP_CTRL_AEAD_SET_TAG, PSP_ICV_BYTES, ciphertext + textBytes);
    isDone &= evp.decryptUpdate(context, 0, this.#outBytesAt, start, clearBytes);
    if (textBytes > 0) {
      isDone &= evp.decryptUpdate(context, this.#texts.of(text) + textOffset, this.#outBytesAt, ciphertext, textBytes);
    }
    return (isDone & evp.decryptFinal(context, this.#lastBlockAt, this.#outBytesAt)) === 1;
  }

  close(): void {
    const evp = this.#evp;
    if (this.#sealing !== 0) evp.freeContext(this.#sealing);
    if (this.#opening !== 0) evp.freeContext(this.#opening);
    this.#sealing = 0;
    this.#opening = 0;
    this.#key.fill(0);
  }

  #context(init: 'encryptInit' | 'decryptInit'): number {
    const evp = this.#evp;
    const context = evp.newContext();
    const type = this.#key.length === KEY_BYTES_128 ? evp.aes128Gcm() : evp.aes256Gcm();
    if (evp[init](context, type, 0, evp.addressOf(this.#key), 0) !== 1) throw new Error('OpenSSL takes no AES-GCM key');
    return context;
  }
}
