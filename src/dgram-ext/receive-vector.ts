/**
 * The buffers of recvmmsg(2): slots of 64 KiB, each with room for a UDP_GRO train (udp(7)), its sender, segment size
 * and traffic class. Invariant: this object owns every byte the structures point to, so holding it while the kernel
 * writes is safe.
 */

import type { IpAddress } from '../packet/address.js';
import { PAYLOAD_ALIGNMENT } from '../port/datagram.js';
import type { LibC } from './libc.js';
import {
  IOVEC_BYTES,
  IOVEC_WORD_LENGTH,
  IOVEC_WORDS,
  MMSGHDR_BYTES,
  MMSGHDR_WORDS,
  storePointer,
  WORD_CONTROL,
  WORD_CONTROLLEN,
  WORD_IOV,
  WORD_IOVLEN,
  WORD_LEN,
  WORD_NAME,
  WORD_NAMELEN,
} from './send-vector.js';
import { SOCKET_ADDRESS_BYTES, SocketAddressCache, socketAddressPort } from './socket-address.js';

/** The longest UDP payload, with or without GRO. */
const SLOT_BYTES = 65536;
const SLOT_STRIDE_BYTES = SLOT_BYTES + 8;
const NAME_BYTES = 32;
/** Traffic class and segment size take 24 each. */
const CONTROL_BYTES = 64;
const CONTROL_WORDS = CONTROL_BYTES / 4;
const CMSG_HEADER_WORDS = 4;

const IPPROTO_IP = 0;
const IP_TOS = 1;
const IPPROTO_IPV6 = 41;
const IPV6_TCLASS = 67;
const SOL_UDP = 17;
const UDP_GRO = 104;

export class ReceiveVector {
  readonly #lib: LibC;
  readonly #slots: number;
  readonly #memory: ArrayBuffer;
  readonly #words: Uint32Array;
  readonly #names: Uint8Array;
  readonly slab: Uint8Array;
  readonly #controlWord: number;
  readonly #headersAddress: number;
  readonly #sources: SocketAddressCache;
  #used: number;
  source: IpAddress;
  sourcePort = 0;
  trafficClass = 0;
  bytes = 0;
  /** Of the slot last {@link open}ed: length of each datagram but the last, which may be shorter. */
  segmentBytes = 0;

  constructor(lib: LibC, slots: number, own: IpAddress) {
    this.#lib = lib;
    this.#slots = slots;
    this.source = own;
    this.#sources = new SocketAddressCache(own);
    const iovOffset = slots * MMSGHDR_BYTES;
    const nameOffset = iovOffset + slots * IOVEC_BYTES;
    const controlOffset = nameOffset + slots * NAME_BYTES;
    this.#memory = new ArrayBuffer(controlOffset + slots * CONTROL_BYTES);
    this.slab = new Uint8Array(new ArrayBuffer(slots * SLOT_STRIDE_BYTES));
    const base = lib.addressOf(new Uint8Array(this.#memory));
    const slab = lib.addressOf(this.slab);
    this.#words = new Uint32Array(this.#memory);
    this.#names = new Uint8Array(this.#memory, nameOffset, slots * NAME_BYTES);
    this.#controlWord = controlOffset / 4;
    this.#headersAddress = base;
    for (let i = 0; i < slots; i++) {
      const header = i * MMSGHDR_WORDS;
      const iov = iovOffset / 4 + i * IOVEC_WORDS;
      storePointer(this.#words, header + WORD_NAME, base + nameOffset + i * NAME_BYTES);
      storePointer(this.#words, header + WORD_IOV, base + iovOffset + i * IOVEC_BYTES);
      this.#words[header + WORD_IOVLEN] = 1;
      storePointer(this.#words, header + WORD_CONTROL, base + controlOffset + i * CONTROL_BYTES);
      storePointer(this.#words, iov, slab + i * SLOT_STRIDE_BYTES + PAYLOAD_ALIGNMENT);
      this.#words[iov + IOVEC_WORD_LENGTH] = SLOT_BYTES;
    }
    this.#used = slots;
  }

  receive(fd: number): number {
    for (let i = 0; i < this.#used; i++) {
      const header = i * MMSGHDR_WORDS;
      this.#words[header + WORD_NAMELEN] = SOCKET_ADDRESS_BYTES;
      this.#words[header + WORD_CONTROLLEN] = CONTROL_BYTES;
    }
    this.#used = Math.max(0, this.#lib.recvmmsg(fd, this.#headersAddress, this.#slots, 0, 0));
    return this.#used;
  }

  open(slot: number): number {
    const words = this.#words;
    const header = slot * MMSGHDR_WORDS;
    this.bytes = words[header + WORD_LEN];
    this.segmentBytes = this.bytes;
    this.trafficClass = 0;
    this.source = this.#sources.get(this.#names, slot * NAME_BYTES);
    this.sourcePort = socketAddressPort(this.#names, slot * NAME_BYTES);
    let word = this.#controlWord + slot * CONTROL_WORDS;
    const end = word + (words[header + WORD_CONTROLLEN] >> 2);
    while (word + CMSG_HEADER_WORDS < end) {
      const length = words[word];
      const level = words[word + 2];
      const type = words[word + 3];
      if (level === SOL_UDP && type === UDP_GRO) this.segmentBytes = words[word + 4];
      // IP_TOS comes as one byte, IPV6_TCLASS as an int: the low byte is the value of both.
      else if ((level === IPPROTO_IP && type === IP_TOS) || (level === IPPROTO_IPV6 && type === IPV6_TCLASS))
        this.trafficClass = words[word + 4] & 0xff;
      word += Math.max(CMSG_HEADER_WORDS, ((length + 7) >> 3) * 2);
    }
    return this.bytes === 0 ? 1 : Math.ceil(this.bytes / this.segmentBytes);
  }

  get wholeSegments(): number {
    return this.bytes === 0 ? 0 : Math.floor(this.bytes / this.segmentBytes);
  }

  segmentOffset(slot: number, index: number): number {
    return slot * SLOT_STRIDE_BYTES + PAYLOAD_ALIGNMENT + index * this.segmentBytes;
  }

  segmentLength(index: number): number {
    return Math.min(this.segmentBytes, this.bytes - index * this.segmentBytes);
  }
}
