/**
 * AES-GCM by OpenSSL's EVP functions, which the node executable exports and koffi calls: one context per key, no
 * allocation per packet. node:crypto makes an object per packet, which takes longer than to encrypt 4 KiB.
 */

import { RoceError } from '../../core/errors.js';
import { koffiPackage, libC } from '../../dgram-ext/libc.js';
import { copyPspNonce, PSP_ICV_BYTES } from '../../packet/psp.js';
import { type CipherImplementation, KEY_BYTES_128, type PacketCipher } from '../../port/secure/packet-cipher.js';
import { type KeptAddresses, keptAddresses, threadAddresses } from './kept-addresses.js';

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
}

const EVP_CTRL_AEAD_GET_TAG = 0x10;
const EVP_CTRL_AEAD_SET_TAG = 0x11;
/** Of the scratch: nonce, a length that OpenSSL writes, the last block, the tag, the key. */
const OUT_BYTES_AT = 16;
const LAST_BLOCK_AT = 32;
const TAG_AT = 48;
const KEY_AT = 64;
const SCRATCH_BYTES = 96;
const [NONCE, OUT_BYTES, LAST_BLOCK, TAG, KEY] = [0, 1, 2, 3, 4];
const [SEALING, OPENING] = [0, 1];

export function opensslEvp(): CipherImplementation {
  const reason = libC();
  if (typeof reason === 'string') throw new RoceError('ERR_ROCE_UNSUPPORTED', `OpenSSL cannot be called: ${reason}`);
  const lib = koffiPackage().load(null);
  const direction = (name: 'Encrypt' | 'Decrypt') => ({
    init: lib.func(`int EVP_${name}Init_ex(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t)`),
    update: lib.func(`int EVP_${name}Update(uintptr_t, uintptr_t, uintptr_t, uintptr_t, int)`),
    final: lib.func(`int EVP_${name}Final_ex(uintptr_t, uintptr_t, uintptr_t)`),
  });
  const encrypt = direction('Encrypt');
  const decrypt = direction('Decrypt');
  const evp: Evp = {
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
  };
  const addresses = threadAddresses();
  return { name: 'openssl', make: (key) => new EvpCipher(evp, addresses, key) };
}

class EvpCipher implements PacketCipher {
  readonly #evp: Evp;
  readonly #addresses: KeptAddresses;
  /** Memory that does not move, which the numbers of `#own` point into. */
  readonly #scratch = new Uint8Array(new ArrayBuffer(SCRATCH_BYTES));
  readonly #own: ReadonlyArray<number | undefined>;
  /** An association uses one of them. */
  readonly #contexts: Array<number | undefined> = [undefined, undefined];
  readonly #keyBytes: number;

  constructor(evp: Evp, addresses: KeptAddresses, key: Uint8Array) {
    this.#evp = evp;
    this.#addresses = addresses;
    this.#own = keptAddresses(addresses.start(this.#scratch), [0, OUT_BYTES_AT, LAST_BLOCK_AT, TAG_AT, KEY_AT]);
    this.#scratch.set(key, KEY_AT);
    this.#keyBytes = key.length;
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
    const evp = this.#evp;
    const addresses = this.#addresses;
    const context = this.#contexts[SEALING] ?? this.#context(SEALING);
    const nonce = this.#own[NONCE]!;
    const outBytes = this.#own[OUT_BYTES]!;
    const start = offset + clearBytes;
    copyPspNonce(packet, offset, this.#scratch);
    let isDone = evp.encryptInit(context, 0, 0, 0, nonce);
    isDone &= evp.encryptUpdate(context, 0, outBytes, addresses.of(packet, offset), clearBytes);
    if (textBytes > 0) {
      const from = addresses.of(text, textOffset);
      isDone &= evp.encryptUpdate(context, addresses.of(packet, start), outBytes, from, textBytes);
    }
    isDone &= evp.encryptFinal(context, this.#own[LAST_BLOCK]!, outBytes);
    isDone &= evp.control(context, EVP_CTRL_AEAD_GET_TAG, PSP_ICV_BYTES, this.#own[TAG]!);
    // An unencrypted packet must never leave.
    if (isDone !== 1) throw new Error('OpenSSL could not encrypt a packet');
    const scratch = this.#scratch;
    for (let i = 0; i < PSP_ICV_BYTES; i++) packet[start + textBytes + i] = scratch[TAG_AT + i];
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
    const addresses = this.#addresses;
    const context = this.#contexts[OPENING] ?? this.#context(OPENING);
    const nonce = this.#own[NONCE]!;
    const outBytes = this.#own[OUT_BYTES]!;
    const start = offset + clearBytes;
    const scratch = this.#scratch;
    copyPspNonce(packet, offset, scratch);
    for (let i = 0; i < PSP_ICV_BYTES; i++) scratch[TAG_AT + i] = packet[start + textBytes + i];
    let isDone = evp.decryptInit(context, 0, 0, 0, nonce);
    isDone &= evp.control(context, EVP_CTRL_AEAD_SET_TAG, PSP_ICV_BYTES, this.#own[TAG]!);
    isDone &= evp.decryptUpdate(context, 0, outBytes, addresses.of(packet, offset), clearBytes);
    if (textBytes > 0) {
      const to = addresses.of(text, textOffset);
      isDone &= evp.decryptUpdate(context, to, outBytes, addresses.of(packet, start), textBytes);
    }
    return (isDone & evp.decryptFinal(context, this.#own[LAST_BLOCK]!, outBytes)) === 1;
  }

  close(): void {
    for (const direction of [SEALING, OPENING]) {
      const context = this.#contexts[direction];
      if (context !== undefined) this.#evp.freeContext(context);
      this.#contexts[direction] = undefined;
    }
    this.#scratch.fill(0);
  }

  #context(direction: number): number {
    const evp = this.#evp;
    const init = direction === SEALING ? evp.encryptInit : evp.decryptInit;
    const context = evp.newContext();
    const type = this.#keyBytes === KEY_BYTES_128 ? evp.aes128Gcm() : evp.aes256Gcm();
    if (init(context, type, 0, this.#own[KEY]!, 0) !== 1) throw new Error('OpenSSL takes no AES-GCM key');
    this.#contexts[direction] = context;
    return context;
  }
}
