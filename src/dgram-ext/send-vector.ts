/**
 * A batch with the `struct mmsghdr`s for sendmmsg(2): one message per train (UDP_SEGMENT, udp(7)). Borrowed data is a
 * separate piece. Invariant: this object owns or has borrowed every byte the structures point to; {@link
 * SendVector.keep} ends the borrowing of a batch that has to wait.
 */

import { copyBytes } from '../core/bytes.js';
import type { IpAddress } from '../packet/address.js';
import { TxBatch } from '../port/datagram.js';
import type { LibC } from './libc.js';
import { rememberedAddresses } from './remembered-addresses.js';
import { SOCKET_ADDRESS_BYTES, socketAddressLength, writeSocketAddress } from './socket-address.js';

/** `struct mmsghdr`, in 32-bit words: name, namelen, iov, iovlen, control, controllen, flags, len. */
export const MMSGHDR_BYTES = 64;
export const MMSGHDR_WORDS = MMSGHDR_BYTES / 4;
export const WORD_NAME = 0;
export const WORD_NAMELEN = 2;
export const WORD_IOV = 4;
export const WORD_IOVLEN = 6;
export const WORD_CONTROL = 8;
export const WORD_CONTROLLEN = 10;
export const WORD_LEN = 14;
export const IOVEC_BYTES = 16;
export const IOVEC_WORDS = IOVEC_BYTES / 4;
export const IOVEC_WORD_LENGTH = 2;

const U32 = 0x1_0000_0000;
export function storePointer(words: Uint32Array, word: number, address: number): void {
  words[word] = address >>> 0;
  words[word + 1] = Math.floor(address / U32);
}

/** A control message with an int in it: length, level, type, value, padding. */
const CMSG_BYTES = 24;
const CMSG_WORDS = CMSG_BYTES / 4;
const CMSG_INT_LENGTH = 20;
const CMSG_U16_LENGTH = 18;
const CONTROL_BYTES = 2 * CMSG_BYTES;
const NAME_BYTES = Math.ceil(SOCKET_ADDRESS_BYTES / 8) * 8;

const IPPROTO_IP = 0;
const IP_TOS = 1;
const IPPROTO_IPV6 = 41;
const IPV6_TCLASS = 67;
const SOL_UDP = 17;
const UDP_SEGMENT = 103;

const EAGAIN = 11;

const PIECES_MAX = 3;

export const SEND_DONE = 0;
/** The kernel is full: call again later, with the same fd. */
export const SEND_AGAIN = 1;

export class SendVector extends TxBatch {
  readonly #lib: LibC;
  readonly #memory: ArrayBuffer;
  readonly #words: Uint32Array;
  readonly #names: Uint8Array;
  readonly #iovWord: number;
  readonly #controlWord: number;
  readonly #headersAddress: number;
  readonly #iovAddress: number;
  /** The content of each name, so that it is written only when it changes. */
  readonly #nameAddresses: IpAddress[];
  readonly #namePorts: Uint16Array;
  readonly #segments: Uint16Array;
  readonly #firstSlots: Uint16Array;
  readonly #borrowedIovs: Uint16Array;
  readonly #slabAddress: number;
  readonly #addressOf: (bytes: Uint8Array) => number;
  #isBorrowing = false;
  #pieceEnd = -1;
  #messages = 0;
  #next = 0;
  sent = 0;
  refused = 0;
  lastErrno = 0;

  constructor(lib: LibC, slots: number, placeholder: IpAddress, trainMax: number, borrows = false) {
    super(slots, placeholder, trainMax);
    this.mayBorrow = borrows;
    this.#lib = lib;
    const iovOffset = slots * MMSGHDR_BYTES;
    const nameOffset = iovOffset + slots * PIECES_MAX * IOVEC_BYTES;
    const controlOffset = nameOffset + slots * NAME_BYTES;
    this.#memory = new ArrayBuffer(controlOffset + slots * CONTROL_BYTES);
    const base = lib.addressOf(new Uint8Array(this.#memory));
    this.#slabAddress = lib.addressOf(this.slab);
    this.#addressOf = rememberedAddresses(lib);
    this.#words = new Uint32Array(this.#memory);
    this.#names = new Uint8Array(this.#memory, nameOffset, slots * NAME_BYTES);
    this.#iovWord = iovOffset / 4;
    this.#controlWord = controlOffset / 4;
    this.#headersAddress = base;
    this.#iovAddress = base + iovOffset;
    this.#nameAddresses = Array<IpAddress>(slots).fill(placeholder);
    this.#namePorts = new Uint16Array(slots);
    this.#segments = new Uint16Array(slots);
    this.#firstSlots = new Uint16Array(slots);
    this.#borrowedIovs = new Uint16Array(slots);

    for (let i = 0; i < slots; i++) {
      const header = i * MMSGHDR_WORDS;
      storePointer(this.#words, header + WORD_NAME, base + nameOffset + i * NAME_BYTES);
      this.#words[header + WORD_NAMELEN] = socketAddressLength(placeholder.family);
      storePointer(this.#words, header + WORD_CONTROL, base + controlOffset + i * CONTROL_BYTES);
      this.#initControl(i, placeholder.family);
      writeSocketAddress(this.#names, i * NAME_BYTES, placeholder, 0);
    }
  }

  /** First the traffic class, which every message has, then the segment size, which only trains have. */
  #initControl(i: number, family: 4 | 6): void {
    const o = this.#controlWord + (i * CONTROL_BYTES) / 4;
    const words = this.#words;
    words[o] = CMSG_INT_LENGTH;
    words[o + 2] = family === 4 ? IPPROTO_IP : IPPROTO_IPV6;
    words[o + 3] = family === 4 ? IP_TOS : IPV6_TCLASS;
    words[o + CMSG_WORDS] = CMSG_U16_LENGTH;
    words[o + CMSG_WORDS + 2] = SOL_UDP;
    words[o + CMSG_WORDS + 3] = UDP_SEGMENT;
  }

  /** Slots of length 0 are skipped: another path has sent their packets. */
  prepare(): void {
    let message = -1;
    let iov = 0;
    let first = 0;
    for (let slot = 0; slot < this.count; slot++) {
      if (this.lengths[slot] === 0) continue;
      if (this.trainIndex(slot) === 0) {
        first = iov;
        this.#beginMessage(++message, slot, iov);
      }
      this.#segments[message]++;
      iov = this.#addPieces(slot, first, iov);
      this.#words[message * MMSGHDR_WORDS + WORD_IOVLEN] = iov - first;
    }
    this.#messages = message + 1;
    for (let i = 0; i < this.#messages; i++) {
      this.#words[i * MMSGHDR_WORDS + WORD_CONTROLLEN] = this.#segments[i] > 1 ? CONTROL_BYTES : CMSG_BYTES;
    }
    this.#next = 0;
    this.sent = 0;
    this.refused = 0;
  }

  /** Returns the next one after them. */
  #addPieces(slot: number, first: number, iov: number): number {
    const start = this.payloadOffset(slot);
    const length = this.lengths[slot];
    const borrowed = this.borrowedLengths[slot];
    if (borrowed === 0) return this.#addPiece(start, length, first, iov);
    this.#isBorrowing = true;
    const before = this.borrowedAt[slot];
    const data = this.#addPiece(start, before, first, iov);
    this.#borrowedIovs[slot] = data;
    this.#setIov(data, this.#addressOf(this.borrowedFrom[slot]) + this.borrowedOffsets[slot], borrowed);
    this.#pieceEnd = -1;
    return this.#addPiece(this.lastWordOffset(slot), length - before - borrowed, first, data + 1);
  }

  #addPiece(start: number, length: number, first: number, iov: number): number {
    const continues = this.#pieceEnd === start && iov > first;
    this.#pieceEnd = start + length;
    if (continues) {
      this.#words[this.#iovWord + (iov - 1) * IOVEC_WORDS + IOVEC_WORD_LENGTH] += length;
      return iov;
    }
    this.#setIov(iov, this.#slabAddress + start, length);
    return iov + 1;
  }

  #setIov(iov: number, address: number, length: number): void {
    const word = this.#iovWord + iov * IOVEC_WORDS;
    storePointer(this.#words, word, address);
    this.#words[word + IOVEC_WORD_LENGTH] = length;
  }

  /**
   * The batch has to wait: borrowed data is copied now, so that later changes of the memory do not change a packet.
   */
  keep(): void {
    if (!this.#isBorrowing) return;
    for (let slot = this.#firstSlots[this.#next]; slot < this.count; slot++) {
      const length = this.borrowedLengths[slot];
      if (length === 0) continue;
      const gap = this.payloadOffset(slot) + this.borrowedAt[slot];
      copyBytes(this.borrowedFrom[slot], this.borrowedOffsets[slot], this.slab, gap, length);
      this.#setIov(this.#borrowedIovs[slot], this.#slabAddress + gap, length);
    }
    this.release();
  }

  release(): void {
    if (!this.#isBorrowing) return;
    this.#isBorrowing = false;
    this.giveBack();
  }

  #beginMessage(message: number, slot: number, iov: number): void {
    const words = this.#words;
    this.#segments[message] = 0;
    this.#firstSlots[message] = slot;
    storePointer(words, message * MMSGHDR_WORDS + WORD_IOV, this.#iovAddress + iov * IOVEC_BYTES);
    const control = this.#controlWord + (message * CONTROL_BYTES) / 4;
    words[control + 4] = (this.dscps[slot] << 2) | this.ecns[slot];
    words[control + CMSG_WORDS + 4] = this.lengths[slot];
    const destination = this.destinations[slot];
    if (this.#nameAddresses[message] === destination && this.#namePorts[message] === this.destinationPorts[slot])
      return;
    this.#nameAddresses[message] = destination;
    this.#namePorts[message] = this.destinationPorts[slot];
    writeSocketAddress(this.#names, message * NAME_BYTES, destination, this.destinationPorts[slot]);
  }

  /** A message that the kernel rejects permanently is counted and skipped. */
  send(fd: number): typeof SEND_DONE | typeof SEND_AGAIN {
    while (this.#next < this.#messages) {
      const address = this.#headersAddress + this.#next * MMSGHDR_BYTES;
      const done = this.#lib.sendmmsg(fd, address, this.#messages - this.#next, 0);
      if (done > 0) {
        for (let i = 0; i < done; i++) this.sent += this.#segments[this.#next++];
        continue;
      }
      const errno = this.#lib.errno();
      if (errno === EAGAIN) return SEND_AGAIN;
      this.lastErrno = errno;
      this.refused += this.#segments[this.#next++];
    }
    return SEND_DONE;
  }
}
