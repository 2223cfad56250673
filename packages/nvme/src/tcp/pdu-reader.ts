/** Every length is checked before anything is stored for it. */

import { crc32c } from 'rocev2/internal/core';
import { COMMON_BYTES, DIGEST_BYTES, type Digests, FES, NO_DIGESTS, PDU_FLAG } from './pdu.js';

export interface PduForm {
  readonly headerBytes: number;
  readonly dataBytesMax: number;
}

export interface PduReceiver {
  readonly forms: ReadonlyMap<number, PduForm>;
  /** Undefined: the PDU is wrong, and the reader has been stopped. */
  place(header: Buffer, bytes: number): Buffer | undefined;
  /** `isIntact`: the data has the digest that came with it, if one has to. The header is valid during the call only. */
  onPdu(header: Buffer, data: Buffer, isIntact: boolean): void;
  onMalformed(status: number, header: Buffer): void;
}

const NO_DATA = Buffer.alloc(0);
/** Headers have up to 128 bytes and a digest; the offset of data is one byte. */
const HEAD_BYTES_MAX = 256;

type Part = 'common' | 'header' | 'data' | 'digest';

export class PduReader {
  digests: Digests = NO_DIGESTS;
  readonly #receiver: PduReceiver;
  readonly #head = Buffer.alloc(HEAD_BYTES_MAX);
  readonly #digest = Buffer.alloc(DIGEST_BYTES);
  #part: Part = 'common';
  #target: Buffer;
  #filled = 0;
  #data: Buffer = NO_DATA;
  #stopped = false;

  constructor(receiver: PduReceiver) {
    this.#receiver = receiver;
    this.#target = this.#head.subarray(0, COMMON_BYTES);
  }

  stop(): void {
    this.#stopped = true;
  }

  feed(bytes: Buffer): void {
    for (let at = 0; at < bytes.length && !this.#stopped; ) {
      const taken = Math.min(this.#target.length - this.#filled, bytes.length - at);
      bytes.copy(this.#target, this.#filled, at, at + taken);
      this.#filled += taken;
      at += taken;
      while (this.#filled === this.#target.length && !this.#stopped) this.#onPart();
    }
  }

  get #headerBytes(): number {
    return this.#head[2];
  }

  get #length(): number {
    return this.#head.readUInt32LE(4);
  }

  get #headBytes(): number {
    const bare = this.#headerBytes + (this.digests.header ? DIGEST_BYTES : 0);
    return this.#length > bare ? this.#head[3] : bare;
  }

  #onPart(): void {
    switch (this.#part) {
      case 'common':
        this.#onCommon();
        return;
      case 'header':
        this.#onHeader();
        return;
      case 'data':
        if (!this.digests.data) {
          this.#deliver(true);
          return;
        }
        this.#expect('digest', this.#digest);
        return;
      case 'digest':
        this.#deliver(this.#digest.readUInt32LE() === crc32c(this.#data));
        return;
    }
  }

  #onCommon(): void {
    const form = this.#receiver.forms.get(this.#head[0]);
    if (form === undefined || this.#headerBytes !== form.headerBytes) {
      this.#refuse(FES.INVALID_HEADER);
      return;
    }
    const bare = form.headerBytes + (this.digests.header ? DIGEST_BYTES : 0);
    const dataBytes = this.#dataBytes();
    const hasFlag = (flag: number) => (this.#head[1] & flag) !== 0;
    const isSound =
      hasFlag(PDU_FLAG.HEADER_DIGEST) === this.digests.header &&
      (dataBytes === 0
        ? this.#length === bare
        : this.#head[3] >= bare && hasFlag(PDU_FLAG.DATA_DIGEST) === this.digests.data);
    if (!isSound || dataBytes < 0 || dataBytes > form.dataBytesMax) {
      this.#refuse(FES.INVALID_HEADER);
      return;
    }
    this.#expect('header', this.#head.subarray(0, this.#headBytes), COMMON_BYTES);
  }

  #dataBytes(): number {
    const bare = this.#headerBytes + (this.digests.header ? DIGEST_BYTES : 0);
    if (this.#length <= bare) return this.#length - bare;
    const dataBytes = this.#length - this.#head[3] - (this.digests.data ? DIGEST_BYTES : 0);
    return dataBytes === 0 ? -1 : dataBytes;
  }

  #onHeader(): void {
    const header = this.#head.subarray(0, this.#headerBytes);
    if (this.digests.header && this.#head.readUInt32LE(header.length) !== crc32c(header)) {
      this.#refuse(FES.HEADER_DIGEST);
      return;
    }
    const dataBytes = this.#dataBytes();
    if (dataBytes === 0) {
      this.#deliver(true);
      return;
    }
    const place = this.#receiver.place(header, dataBytes);
    if (place === undefined) return;
    this.#data = place;
    this.#expect('data', place);
  }

  #deliver(isIntact: boolean): void {
    const data = this.#data;
    const header = this.#head.subarray(0, this.#headerBytes);
    this.#data = NO_DATA;
    this.#expect('common', this.#head.subarray(0, COMMON_BYTES));
    this.#receiver.onPdu(header, data, isIntact);
  }

  #expect(part: Part, target: Buffer, filled = 0): void {
    this.#part = part;
    this.#target = target;
    this.#filled = filled;
  }

  #refuse(status: number): void {
    this.stop();
    this.#receiver.onMalformed(status, Buffer.from(this.#head.subarray(0, COMMON_BYTES)));
  }
}
