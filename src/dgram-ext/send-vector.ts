/**
 * A batch of outgoing datagrams with the `struct mmsghdr`s beside it that sendmmsg(2) wants: one message a train, its segments gathered
 * from the slots of the slab, cut apart again by the kernel or the network card (UDP_SEGMENT, udp(7)).
 *
 * Invariant: this object owns every byte the structures point to, so whoever holds it while the kernel reads is safe.
 */

import type { IpAddress } from '../packet/address.js';
import { TxBatch } from '../port/datagram.js';
import type { LibC } from './libc.js';
import { SOCKET_ADDRESS_BYTES, socketAddressLength, writeSocketAddress } from './socket-address.js';

/** `struct mmsghdr`, in 32-bit words: name, namelen, iov, iovlen, control, controllen, flags, len. */
export const MMSGHDR_BYTES = 64;
/** The same in 32-bit words. */
export const MMSGHDR_WORDS = MMSGHDR_BYTES / 4;
/** Word of `struct mmsghdr`: pointer to the socket address. */
export const WORD_NAME = 0;
/** Word of `struct mmsghdr`: bytes of the socket address. */
export const WORD_NAMELEN = 2;
/** Word of `struct mmsghdr`: pointer to the iovecs. */
export const WORD_IOV = 4;
/** Word of `struct mmsghdr`: number of iovecs. */
export const WORD_IOVLEN = 6;
/** Word of `struct mmsghdr`: pointer to the control messages. */
export const WORD_CONTROL = 8;
/** Word of `struct mmsghdr`: bytes of control messages. */
export const WORD_CONTROLLEN = 10;
/** Word of `struct mmsghdr`: bytes received, or sent. */
export const WORD_LEN = 14;
/** `struct iovec`: base, length. */
export const IOVEC_BYTES = 16;
/** The same in 32-bit words. */
export const IOVEC_WORDS = IOVEC_BYTES / 4;
/** Word of `struct iovec`: bytes. */
export const IOVEC_WORD_LENGTH = 2;

const U32 = 0x1_0000_0000;
/** Stores a 64-bit pointer as two words. */
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

/** How {@link SendVector.send} ended. */
export const SEND_DONE = 0;
/** The kernel is full: call again later, with the same fd. */
export const SEND_AGAIN = 1;

/** A batch that the kernel takes with few system calls. */
export class SendVector extends TxBatch {
  readonly #lib: LibC;
  readonly #memory: ArrayBuffer;
  readonly #words: Uint32Array;
  readonly #names: Uint8Array;
  /** Word index of each part. */
  readonly #iovWord: number;
  readonly #controlWord: number;
  readonly #headersAddress: number;
  readonly #iovAddress: number;
  /** What stands in each name, so that it is written only when it changes. */
  readonly #nameAddresses: IpAddress[];
  readonly #namePorts: Uint16Array;
  /** Datagrams in each message. */
  readonly #segments: Uint16Array;
  #messages = 0;
  #next = 0;
  /** Datagrams that went out, and that the kernel refused, since {@link prepare}. */
  sent = 0;
  /** Datagrams that the kernel refused since {@link prepare}. */
  refused = 0;
  /** errno of the last refusal. */
  lastErrno = 0;

  constructor(lib: LibC, slots: number, placeholder: IpAddress, trainMax: number) {
    super(slots, placeholder, trainMax);
    this.#lib = lib;
    const iovOffset = slots * MMSGHDR_BYTES;
    const nameOffset = iovOffset + slots * IOVEC_BYTES;
    const controlOffset = nameOffset + slots * NAME_BYTES;
    this.#memory = new ArrayBuffer(controlOffset + slots * CONTROL_BYTES);
    const base = lib.addressOf(new Uint8Array(this.#memory));
    const slab = lib.addressOf(this.slab);
    this.#words = new Uint32Array(this.#memory);
    this.#names = new Uint8Array(this.#memory, nameOffset, slots * NAME_BYTES);
    this.#iovWord = iovOffset / 4;
    this.#controlWord = controlOffset / 4;
    this.#headersAddress = base;
    this.#iovAddress = base + iovOffset;
    this.#nameAddresses = Array<IpAddress>(slots).fill(placeholder);
    this.#namePorts = new Uint16Array(slots);
    this.#segments = new Uint16Array(slots);

    for (let i = 0; i < slots; i++) {
      const header = i * MMSGHDR_WORDS;
      storePointer(this.#words, header + WORD_NAME, base + nameOffset + i * NAME_BYTES);
      this.#words[header + WORD_NAMELEN] = socketAddressLength(placeholder.family);
      storePointer(this.#words, header + WORD_CONTROL, base + controlOffset + i * CONTROL_BYTES);
      storePointer(this.#words, this.#iovWord + i * IOVEC_WORDS, slab + this.payloadOffset(i));
      this.#initControl(i, placeholder.family);
      writeSocketAddress(this.#names, i * NAME_BYTES, placeholder, 0);
    }
  }

  /** First the traffic class, which every message says, then the segment size, which only trains have. */
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

  /** Makes messages of the `count` slots: one a train. Slots of length 0 are passed over: somebody else has taken what stood there. */
  prepare(): void {
    let message = -1;
    for (let slot = 0; slot < this.count; slot++) {
      if (this.lengths[slot] === 0) continue;
      this.#words[this.#iovWord + slot * IOVEC_WORDS + IOVEC_WORD_LENGTH] = this.lengths[slot];
      if (this.trainIndex(slot) === 0) this.#beginMessage(++message, slot);
      this.#segments[message]++;
    }
    this.#messages = message + 1;
    for (let i = 0; i < this.#messages; i++) {
      const segments = this.#segments[i];
      const header = i * MMSGHDR_WORDS;
      this.#words[header + WORD_IOVLEN] = segments;
      this.#words[header + WORD_CONTROLLEN] = segments > 1 ? CONTROL_BYTES : CMSG_BYTES;
    }
    this.#next = 0;
    this.sent = 0;
    this.refused = 0;
  }

  #beginMessage(message: number, slot: number): void {
    const words = this.#words;
    this.#segments[message] = 0;
    storePointer(words, message * MMSGHDR_WORDS + WORD_IOV, this.#iovAddress + slot * IOVEC_BYTES);
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

  /** Sends what is left. A message the kernel refuses for good is counted and passed over. */
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
