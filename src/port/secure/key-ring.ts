/**
 * Opens recorded packets with the secrets of a key log. A recording may lack or repeat packets, so there is no replay
 * window, and a packet's key is searched by its phase bit from the last known epoch on.
 */

import { PSP_AES_128_GCM, PSP_ICV_BYTES, pspPhase, pspSpi, pspVersion } from '../../packet/psp.js';
import type { LoggedSecret } from './key-log.js';
import { KeySchedule } from './key-schedule.js';
import { KEY_BYTES_128, KEY_BYTES_256, NodeCipher, type PacketCipher } from './packet-cipher.js';

export const RECORD_OPENED = 0;
export const RECORD_WITHOUT_KEY = 1;
/** No key fits: the packet was changed, truncated or forged, or is of another connection with the same SPI. */
export const RECORD_FORGED = 2;

/** This many key changes may be missing in a recording. */
const EPOCHS_MISSING_MAX = 256;

class RecordedDirection {
  readonly #schedule: KeySchedule;
  readonly #ciphers: PacketCipher[] = [];
  #epoch = 0;

  constructor(secret: Uint8Array, keyBytes: number) {
    this.#schedule = new KeySchedule(secret, keyBytes);
  }

  open(packet: Uint8Array, clearBytes: number, text: Uint8Array): boolean {
    const phase = pspPhase(packet, 0);
    const textBytes = packet.length - clearBytes - PSP_ICV_BYTES;
    const end = this.#epoch + EPOCHS_MISSING_MAX;
    for (let epoch = Math.max(0, this.#epoch - 1); epoch <= end; epoch++) {
      if ((epoch & 1) !== phase || !this.#cipher(epoch).open(packet, 0, clearBytes, textBytes, text, 0)) continue;
      this.#epoch = Math.max(this.#epoch, epoch);
      return true;
    }
    return false;
  }

  #cipher(epoch: number): PacketCipher {
    while (this.#ciphers.length <= epoch) this.#ciphers.push(new NodeCipher(this.#schedule.next()));
    return this.#ciphers[epoch];
  }
}

export class KeyRing {
  readonly #secrets = new Map<number, Set<string>>();
  readonly #directions = new Map<string, RecordedDirection>();

  constructor(secrets: readonly LoggedSecret[]) {
    for (const { spi, secret } of secrets) {
      const ofSpi = this.#secrets.get(spi) ?? new Set();
      // Both ends may have written the same log.
      this.#secrets.set(spi, ofSpi.add(Buffer.from(secret).toString('hex')));
    }
  }

  open(packet: Uint8Array, clearBytes: number, text: Uint8Array): number {
    const spi = pspSpi(packet, 0);
    const secrets = this.#secrets.get(spi);
    if (secrets === undefined) return RECORD_WITHOUT_KEY;
    const keyBytes = pspVersion(packet, 0) === PSP_AES_128_GCM ? KEY_BYTES_128 : KEY_BYTES_256;
    for (const secret of secrets) {
      if (this.#direction(spi, secret, keyBytes).open(packet, clearBytes, text)) return RECORD_OPENED;
    }
    return RECORD_FORGED;
  }

  #direction(spi: number, secret: string, keyBytes: number): RecordedDirection {
    const name = `${spi} ${secret} ${keyBytes}`;
    let direction = this.#directions.get(name);
    if (direction === undefined) {
      direction = new RecordedDirection(new Uint8Array(Buffer.from(secret, 'hex')), keyBytes);
      this.#directions.set(name, direction);
    }
    return direction;
  }
}
