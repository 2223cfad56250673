/**
 * Frames in batches for recvmmsg(2) and sendmmsg(2). Each slot is a `struct virtio_net_hdr` followed by the frame; the
 * kernel reports a stripped 802.1Q tag in a control message (packet(7), PACKET_AUXDATA). Invariant: these objects own
 * every byte the structures point to, so holding one while the kernel works is safe.
 */

import { writeU16 } from '../core/bytes.js';
import { MAC_BYTES, VLAN_TAG_BYTES } from '../packet/ethernet.js';
import type { LibC } from './libc.js';
import { VNET_HEADER_BYTES } from './offloads.js';
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
} from './send-vector.js';

/** Header, and the longest super-frame: 64 KiB of IP behind Ethernet with a tag. */
const SLOT_BYTES = 65_536 + 64;
/**
 * Space to reinsert the tag, with data aligned after the usual headers: 2 + 10 + 14 + 20 + 8 + 12 + 16 is a
 * multiple of 8 but for 2.
 */
const SLOT_START = 8;
const SLOT_STRIDE_BYTES = SLOT_START + SLOT_BYTES;
const CONTROL_BYTES = 64;
const CONTROL_WORDS = CONTROL_BYTES / 4;
const CMSG_HEADER_WORDS = 4;
const SOL_PACKET = 263;
const PACKET_AUXDATA = 8;
/** `tp_status` of `struct tpacket_auxdata`: there was a tag. */
const TP_STATUS_VLAN_VALID = 1 << 4;

const EAGAIN = 11;
const ENOBUFS = 105;

class FrameVector {
  protected readonly lib: LibC;
  protected readonly slots: number;
  protected readonly words: Uint32Array;
  protected readonly headersAddress: number;
  protected readonly iovWord: number;
  protected readonly controlWord: number;
  readonly #memory: ArrayBuffer;
  readonly slab: Uint8Array;

  constructor(lib: LibC, slots: number) {
    this.lib = lib;
    this.slots = slots;
    const iovOffset = slots * MMSGHDR_BYTES;
    const controlOffset = iovOffset + slots * IOVEC_BYTES;
    this.#memory = new ArrayBuffer(controlOffset + slots * CONTROL_BYTES);
    this.slab = new Uint8Array(new ArrayBuffer(slots * SLOT_STRIDE_BYTES));
    const base = lib.addressOf(new Uint8Array(this.#memory));
    const slab = lib.addressOf(this.slab);
    this.words = new Uint32Array(this.#memory);
    this.iovWord = iovOffset / 4;
    this.controlWord = controlOffset / 4;
    this.headersAddress = base;
    for (let i = 0; i < slots; i++) {
      const header = i * MMSGHDR_WORDS;
      const iov = this.iovWord + i * IOVEC_WORDS;
      storePointer(this.words, header + WORD_IOV, base + iovOffset + i * IOVEC_BYTES);
      this.words[header + WORD_IOVLEN] = 1;
      storePointer(this.words, header + WORD_CONTROL, base + controlOffset + i * CONTROL_BYTES);
      storePointer(this.words, iov, slab + this.start(i));
      this.words[iov + IOVEC_WORD_LENGTH] = SLOT_BYTES;
    }
  }

  protected start(slot: number): number {
    return slot * SLOT_STRIDE_BYTES + SLOT_START;
  }
}

export class FrameReceiveVector extends FrameVector {
  header = 0;
  frame = 0;
  length = 0;
  #used = 0;

  constructor(lib: LibC, slots: number) {
    super(lib, slots);
    this.#used = slots;
  }

  receive(fd: number): number {
    for (let i = 0; i < this.#used; i++) this.words[i * MMSGHDR_WORDS + WORD_CONTROLLEN] = CONTROL_BYTES;
    this.#used = Math.max(0, this.lib.recvmmsg(fd, this.headersAddress, this.slots, 0, 0));
    return this.#used;
  }

  open(slot: number): void {
    this.header = this.start(slot);
    this.frame = this.header + VNET_HEADER_BYTES;
    this.length = this.words[slot * MMSGHDR_WORDS + WORD_LEN] - VNET_HEADER_BYTES;
    const word = this.controlWord + slot * CONTROL_WORDS;
    const hasControl = this.words[slot * MMSGHDR_WORDS + WORD_CONTROLLEN] > CMSG_HEADER_WORDS * 4;
    if (!hasControl || this.words[word + 2] !== SOL_PACKET || this.words[word + 3] !== PACKET_AUXDATA) return;
    const auxdata = word + CMSG_HEADER_WORDS;
    if ((this.words[auxdata] & TP_STATUS_VLAN_VALID) === 0) return;
    // struct tpacket_auxdata: status, len, snaplen, mac and net, tci and tpid.
    const tag = this.words[auxdata + 4];
    this.#insertTag(tag >>> 16 || 0x8100, tag & 0xffff);
  }

  #insertTag(protocol: number, tci: number): void {
    const { slab } = this;
    slab.copyWithin(this.header - VLAN_TAG_BYTES, this.header, this.frame + 2 * MAC_BYTES);
    this.header -= VLAN_TAG_BYTES;
    this.frame -= VLAN_TAG_BYTES;
    this.length += VLAN_TAG_BYTES;
    writeU16(slab, this.frame + 2 * MAC_BYTES, protocol);
    writeU16(slab, this.frame + 2 * MAC_BYTES + 2, tci);
    if ((slab[this.header] & 1) === 0) return;
    // Where the checksum begins counts from the start of the frame.
    const start = (slab[this.header + 6] | (slab[this.header + 7] << 8)) + VLAN_TAG_BYTES;
    slab[this.header + 6] = start;
    slab[this.header + 7] = start >> 8;
  }
}

export class FrameSendVector extends FrameVector {
  refused = 0;
  #count = 0;

  get isFull(): boolean {
    return this.#count === this.slots;
  }

  add(bytes: Uint8Array, offset: number, length: number): void {
    const start = this.start(this.#count);
    this.slab.fill(0, start, start + VNET_HEADER_BYTES);
    this.#copy(bytes, offset, length, start + VNET_HEADER_BYTES);
  }

  addWithHeader(bytes: Uint8Array, offset: number, length: number): void {
    this.#copy(bytes, offset, length, this.start(this.#count));
  }

  #copy(bytes: Uint8Array, offset: number, length: number, to: number): void {
    this.slab.set(offset === 0 && length === bytes.length ? bytes : bytes.subarray(offset, offset + length), to);
    const end = to + length - this.start(this.#count);
    this.words[this.iovWord + this.#count * IOVEC_WORDS + IOVEC_WORD_LENGTH] = end;
    this.#count++;
  }

  /** Frames that it does not take now are lost and counted, as on a link whose queue is full. */
  flush(fd: number): void {
    let next = 0;
    while (next < this.#count) {
      const done = this.lib.sendmmsg(fd, this.headersAddress + next * MMSGHDR_BYTES, this.#count - next, 0);
      if (done > 0) {
        next += done;
        continue;
      }
      const errno = this.lib.errno();
      const lost = errno === EAGAIN || errno === ENOBUFS ? this.#count - next : 1;
      this.refused += lost;
      next += lost;
    }
    this.#count = 0;
  }
}
