/**
 * Packets whose payload has a length and no bytes, as in ns-3. Times, queues and marks follow from headers and lengths,
 * so the packets are the same as with payload, but without an ICRC. A telemetry trailer stands after the payload;
 * frames that may carry one are kept whole.
 */

import { readU16 } from 'rocev2/internal/core';
import {
  BTH_BYTES,
  BTH_TRAILER,
  OP_READ_RESPONSE,
  OP_SEND,
  OP_WRITE,
  OPCODES,
  SACK_BITMAP_BYTES_MAX,
  trailerBytesOf,
} from 'rocev2/internal/packet';
import { frameHeaderBytes } from 'rocev2/internal/port';
import type { FrameStorage } from '../switch/frame-pool.js';

const BTH_OFFSET = frameHeaderBytes(4);
const UDP_LENGTH_OFFSET = BTH_OFFSET - 4;
const UDP_BYTES = 8;
const EXTENSION_BYTES_MAX = OPCODES.reduce((most, info) => Math.max(most, info?.extBytes ?? 0), 0);
const HEAD_BYTES = BTH_OFFSET + BTH_BYTES + EXTENSION_BYTES_MAX;
/** No packet without payload is longer, with any bitmap and trailer. */
const WHOLE_BYTES_MAX = BTH_OFFSET + BTH_BYTES + EXTENSION_BYTES_MAX + SACK_BITMAP_BYTES_MAX + 96;

export const HEADERS_ONLY: FrameStorage = { wholeBytesMax: WHOLE_BYTES_MAX, headBytes: HEAD_BYTES };

export class VirtualPayload {
  readonly #bytes: Uint8Array;
  #written = 0;

  constructor(frameBytesMax: number) {
    this.#bytes = new Uint8Array(frameBytesMax);
  }

  read(bytes: Uint8Array, offset: number, length: number): Uint8Array {
    const out = this.#bytes;
    const bth = offset + BTH_OFFSET;
    const info = OPCODES[bytes[bth]];
    const isData = info !== undefined && isDataKind(info.kind);
    const head = isData ? Math.min(length, BTH_OFFSET + BTH_BYTES + info.extBytes) : length;
    for (let i = 0; i < head; i++) out[i] = bytes[offset + i];
    if (head < this.#written) out.fill(0, head, this.#written);
    this.#written = head;
    if (isData && (bytes[bth + 4] & BTH_TRAILER) !== 0) this.#readTrailer(bytes, offset);
    return out;
  }

  #readTrailer(bytes: Uint8Array, offset: number): void {
    const udpPayloadBytes = readU16(bytes, offset + UDP_LENGTH_OFFSET) - UDP_BYTES;
    const end = BTH_OFFSET + udpPayloadBytes;
    const trailerBytes = trailerBytesOf(bytes, offset + BTH_OFFSET, udpPayloadBytes);
    for (let i = end - trailerBytes; i < end; i++) this.#bytes[i] = bytes[offset + i];
    this.#written = end;
  }
}

function isDataKind(kind: number): boolean {
  return kind === OP_SEND || kind === OP_WRITE || kind === OP_READ_RESPONSE;
}
