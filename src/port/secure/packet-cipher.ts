/** AES-GCM over one packet in PSP: the interface, and the implementation by node:crypto that works everywhere. */

import { createCipheriv, createDecipheriv } from 'node:crypto';
import { copyPspNonce, PSP_ICV_BYTES } from '../../packet/psp.js';

/** Bytes of the keys of AES-128-GCM. */
export const KEY_BYTES_128 = 16;
/** Bytes of the keys of AES-256-GCM. */
export const KEY_BYTES_256 = 32;
const NONCE_BYTES = 12;

/** A packet is `clearBytes` of additional data, beginning with a PSP header, then ciphertext, then the ICV. */
export interface PacketCipher {
  /** The two must not overlap. */
  seal(
    text: Uint8Array,
    textOffset: number,
    textBytes: number,
    packet: Uint8Array,
    offset: number,
    clearBytes: number,
  ): void;
  /** False, with undefined content in `text`, if the packet is not authentic. */
  open(
    packet: Uint8Array,
    offset: number,
    clearBytes: number,
    textBytes: number,
    text: Uint8Array,
    textOffset: number,
  ): boolean;
  close(): void;
}

export type CipherMaker = (key: Uint8Array) => PacketCipher;

export interface CipherImplementation {
  readonly name: string;
  readonly make: CipherMaker;
}

export class NodeCipher implements PacketCipher {
  readonly #key: Uint8Array;
  readonly #name: 'aes-128-gcm' | 'aes-256-gcm';
  readonly #nonce = new Uint8Array(NONCE_BYTES);

  constructor(key: Uint8Array) {
    this.#key = key;
    this.#name = key.length === KEY_BYTES_128 ? 'aes-128-gcm' : 'aes-256-gcm';
  }

  seal(
    text: Uint8Array,
    textOffset: number,
    textBytes: number,
    packet: Uint8Array,
    offset: number,
    clearBytes: number,
  ): void {
    copyPspNonce(packet, offset, this.#nonce);
    const cipher = createCipheriv(this.#name, this.#key, this.#nonce);
    const start = offset + clearBytes;
    cipher.setAAD(packet.subarray(offset, start));
    if (textBytes > 0) packet.set(cipher.update(text.subarray(textOffset, textOffset + textBytes)), start);
    cipher.final();
    packet.set(cipher.getAuthTag(), start + textBytes);
  }

  open(
    packet: Uint8Array,
    offset: number,
    clearBytes: number,
    textBytes: number,
    text: Uint8Array,
    textOffset: number,
  ): boolean {
    copyPspNonce(packet, offset, this.#nonce);
    const decipher = createDecipheriv(this.#name, this.#key, this.#nonce, { authTagLength: PSP_ICV_BYTES });
    const start = offset + clearBytes;
    const end = start + textBytes;
    decipher.setAAD(packet.subarray(offset, start));
    decipher.setAuthTag(packet.subarray(end, end + PSP_ICV_BYTES));
    if (textBytes > 0) text.set(decipher.update(packet.subarray(start, end)), textOffset);
    try {
      decipher.final();
      return true;
    } catch {
      return false;
    }
  }

  close(): void {
    this.#key.fill(0);
  }
}
