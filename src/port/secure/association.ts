/**
 * State that two endpoints share to protect packets: keys of both directions, counters and the key change. Keys change
 * without a message: the SPI's phase bit is the parity of the key's epoch. The initiator begins an epoch by sealing
 * with its key; the other end follows once it has opened such a packet, and the initiator begins the next only after it
 * has opened one of the current epoch. So each end has at most two epochs, regardless of losses. The IV continues, so
 * no nonce repeats and one replay window serves all epochs. A forged phase bit costs one decryption and changes
 * nothing.
 */

import type { AssociationCounts, AssociationTerms } from '../../memory/ring/protection.js';
import type { IpAddress } from '../../packet/address.js';
import {
  PSP_AES_128_GCM,
  PSP_AES_256_GCM,
  PSP_ICV_BYTES,
  PSP_PHASE_BIT,
  pspIvHigh,
  pspIvLow,
  pspPhase,
} from '../../packet/psp.js';
import { KeySchedule } from './key-schedule.js';
import { type CipherMaker, KEY_BYTES_128, type PacketCipher } from './packet-cipher.js';
import { COUNTER_NEW, ReplayWindow } from './replay-window.js';

const U32 = 0x1_0000_0000;
const IV_HIGH_MAX = 0x1f_ffff;

export interface RekeyLimits {
  readonly packets?: number;
  readonly ns?: number;
  /**
   * A key seals at most this many packets; if the peer has not followed by then, nothing is sent. Default 2^26 (RFC
   * 9001 appendix B for packets of 4 KiB).
   */
  readonly packetsMax?: number;
  readonly oldKeyNs?: number;
}

const DEFAULTS = { packets: 2 ** 24, ns: 3600e9, packetsMax: 2 ** 26, oldKeyNs: 10e9 };
/** After this many opened packets without a sealed one, an empty packet shows the peer which key has arrived. */
const SILENT_PACKETS_MAX = 2 ** 20;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

export const OPENED = 0;
/** It was opened before, or is too old to be checked. */
export const REPLAYED = 1;
/** It is not authentic. */
export const FORGED = 2;

/** Times are nanoseconds of the clock of the caller. */
export class Association {
  readonly terms: AssociationTerms;
  readonly address: IpAddress;
  readonly version: number;
  readonly counters: Mutable<AssociationCounts> = { sealed: 0, opened: 0, replayed: 0, forged: 0, rekeys: 0 };
  isStarted = false;
  isRetired = false;

  readonly #makeCipher: CipherMaker;
  readonly #limits: Required<RekeyLimits>;
  readonly #sendKeys: KeySchedule;
  readonly #receiveKeys: KeySchedule;
  readonly #window = new ReplayWindow();
  #sendEpoch = 0;
  #receiveEpoch = 0;
  #sendCipher: PacketCipher;
  #last: PacketCipher | undefined;
  #current: PacketCipher;
  #next: PacketCipher;
  /** Counter of the first packet that was opened with the current key; older ones may have the last key. */
  #firstOfEpoch = 0;
  #counter = 0;
  #sealedInEpoch = 0;
  #openedInEpoch = 0;
  #epochBeganNs: number;
  #receiveEpochBeganNs: number;
  #openedSinceSealed = 0;
  #hasToConfirm = false;

  constructor(
    terms: AssociationTerms,
    address: IpAddress,
    makeCipher: CipherMaker,
    nowNs: number,
    limits: RekeyLimits = {},
  ) {
    const keyBytes = terms.keyBytes ?? KEY_BYTES_128;
    this.terms = terms;
    this.address = address;
    this.version = keyBytes === KEY_BYTES_128 ? PSP_AES_128_GCM : PSP_AES_256_GCM;
    this.#makeCipher = makeCipher;
    this.#limits = { ...DEFAULTS, ...limits };
    this.#sendKeys = new KeySchedule(terms.sendSecret, keyBytes);
    this.#receiveKeys = new KeySchedule(terms.receiveSecret, keyBytes);
    this.#sendCipher = makeCipher(this.#sendKeys.next());
    this.#current = makeCipher(this.#receiveKeys.next());
    this.#next = makeCipher(this.#receiveKeys.next());
    this.#epochBeganNs = nowNs;
    this.#receiveEpochBeganNs = nowNs;
  }

  get epoch(): number {
    return this.#sendEpoch;
  }

  /**
   * False: keys are used up, and nothing may be sent. Then {@link spi}, {@link ivHigh} and {@link ivLow} name the
   * packet.
   */
  prepare(nowNs: number): boolean {
    const { packets, ns, packetsMax } = this.#limits;
    const isDue = this.#sealedInEpoch + this.#openedInEpoch >= packets || nowNs - this.#epochBeganNs >= ns;
    if (isDue && this.terms.isInitiator && this.#receiveEpoch === this.#sendEpoch) this.#sealWithNext(nowNs);
    return this.#sealedInEpoch < packetsMax;
  }

  get spi(): number {
    return this.terms.remoteSpi + ((this.#sendEpoch & 1) === 0 ? 0 : PSP_PHASE_BIT);
  }

  get ivHigh(): number {
    return Math.floor(this.#counter / U32);
  }

  get ivLow(): number {
    return this.#counter % U32;
  }

  seal(
    text: Uint8Array,
    textOffset: number,
    textBytes: number,
    packet: Uint8Array,
    offset: number,
    clearBytes: number,
  ): void {
    this.#sendCipher.seal(text, textOffset, textBytes, packet, offset, clearBytes);
    this.#counter++;
    this.#sealedInEpoch++;
    this.#openedSinceSealed = 0;
    this.#hasToConfirm = false;
    this.counters.sealed++;
  }

  get hasToConfirm(): boolean {
    return this.isStarted && (this.#hasToConfirm || this.#openedSinceSealed >= SILENT_PACKETS_MAX);
  }

  /** `packetBytes` from PSP header to ICV. */
  open(
    packet: Uint8Array,
    offset: number,
    packetBytes: number,
    clearBytes: number,
    text: Uint8Array,
    textOffset: number,
    nowNs: number,
  ): number {
    const ivHigh = pspIvHigh(packet, offset);
    if (ivHigh > IV_HIGH_MAX) return this.#refuse(FORGED);
    const counter = ivHigh * U32 + pspIvLow(packet, offset);
    if (this.#window.check(counter) !== COUNTER_NEW) return this.#refuse(REPLAYED);
    const cipher = this.#cipherOf(pspPhase(packet, offset), counter, nowNs);
    const textBytes = packetBytes - clearBytes - PSP_ICV_BYTES;
    if (cipher?.open(packet, offset, clearBytes, textBytes, text, textOffset) !== true) return this.#refuse(FORGED);
    this.#window.take(counter);
    if (cipher === this.#next) this.#follow(counter, nowNs);
    this.isStarted = true;
    this.#openedSinceSealed++;
    this.#openedInEpoch++;
    this.counters.opened++;
    return OPENED;
  }

  #refuse(why: typeof REPLAYED | typeof FORGED): number {
    if (why === REPLAYED) this.counters.replayed++;
    else this.counters.forged++;
    return why;
  }

  #cipherOf(phase: number, counter: number, nowNs: number): PacketCipher | undefined {
    if (phase === (this.#receiveEpoch & 1)) return this.#current;
    if (counter > this.#firstOfEpoch || this.#receiveEpoch === 0) return this.#next;
    if (nowNs - this.#receiveEpochBeganNs <= this.#limits.oldKeyNs) return this.#last;
    this.#last?.close();
    this.#last = undefined;
    return undefined;
  }

  #follow(counter: number, nowNs: number): void {
    this.#last?.close();
    this.#last = this.#current;
    this.#current = this.#next;
    this.#next = this.#makeCipher(this.#receiveKeys.next());
    this.#receiveEpoch++;
    this.#firstOfEpoch = counter;
    this.#receiveEpochBeganNs = nowNs;
    if (this.#sendEpoch < this.#receiveEpoch) {
      this.#sealWithNext(nowNs);
      this.#hasToConfirm = true;
    }
  }

  #sealWithNext(nowNs: number): void {
    this.#sendCipher.close();
    this.#sendCipher = this.#makeCipher(this.#sendKeys.next());
    this.#sendEpoch++;
    this.#sealedInEpoch = 0;
    this.#openedInEpoch = 0;
    this.#epochBeganNs = nowNs;
    this.counters.rekeys++;
  }

  close(): void {
    for (const cipher of [this.#sendCipher, this.#last, this.#current, this.#next]) cipher?.close();
  }
}
