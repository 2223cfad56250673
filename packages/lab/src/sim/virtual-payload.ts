/**
 * Packets whose payload has a length and no bytes, as "virtual payload" has in ns-3: cables and switches keep the headers of a frame, and whoever takes it in sees zeros
 * behind them. Times, queues, marks and everything that ends of a connection decide follow from headers and lengths, so a run has the same packets as with payload. There is no
 * ICRC: nothing is damaged, and nobody checks it.
 *
 * A trailer of in-band telemetry stands behind the payload. Where there are any, frames are kept whole, and their payload is whatever it is.
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

/** Stations have IPv4 addresses. */
const BTH_OFFSET = frameHeaderBytes(4);
const UDP_LENGTH_OFFSET = BTH_OFFSET - 4;
const UDP_BYTES = 8;
const EXTENSION_BYTES_MAX = OPCODES.reduce((most, info) => Math.max(most, info?.extBytes ?? 0), 0);
/** All that is not payload in a data packet, up to where the payload begins. */
const HEAD_BYTES = BTH_OFFSET + BTH_BYTES + EXTENSION_BYTES_MAX;
/** No packet without payload is longer, whatever bitmap and trailer it has. */
const WHOLE_BYTES_MAX = BTH_OFFSET + BTH_BYTES + EXTENSION_BYTES_MAX + SACK_BITMAP_BYTES_MAX + 96;

/** How cables and switches keep frames without payload. */
export const HEADERS_ONLY: FrameStorage = { wholeBytesMax: WHOLE_BYTES_MAX, headBytes: HEAD_BYTES };

/** The frames that one station takes in. */
export class VirtualPayload {
  readonly #bytes: Uint8Array;
  /** What lies behind is zero. */
  #written = 0;

  constructor(frameBytesMax: number) {
    this.#bytes = new Uint8Array(frameBytesMax);
  }

  /** The RoCE frame `bytes[offset, offset + length)` with zeros for its payload and ICRC, at offset 0 of the array that is returned; valid until the next one. */
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
