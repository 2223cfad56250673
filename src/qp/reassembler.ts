/**
 * Turns the packets of SEND and WRITE messages into bytes in memory and completions (IBTA vol. 1 §9.7.4.1). It knows
 * the message in progress and checks opcode sequence, resources, length and key, in that order; the meaning of a
 * refusal, and the next expected packet, are up to the transport.
 */

import { MEMORY_OK } from '../memory/key-table.js';
import { MemoryRange } from '../memory/memory-range.js';
import { COUNTER } from '../memory/ring/counters.js';
import {
  ACCESS_LOCAL_WRITE,
  ACCESS_REMOTE_WRITE,
  STATUS_LOC_LEN_ERR,
  STATUS_LOC_PROT_ERR,
  STATUS_REM_INV_REQ_ERR,
  STATUS_SUCCESS,
  WC_FLAG_SOLICITED,
  WC_FLAG_WITH_IMM,
  WC_FLAG_WITH_INV,
  WC_RECV,
  WC_RECV_RDMA_WITH_IMM,
} from '../memory/ring/enums.js';
import { MESSAGE_BYTES_MAX } from '../memory/ring/work-queue.js';
import { SgeCursor } from '../memory/sge-cursor.js';
import { NAK_INVALID_REQUEST, NAK_REMOTE_ACCESS, NAK_REMOTE_OPERATION } from '../packet/aeth.js';
import * as op from '../packet/opcode.js';
import type { RocePacket } from '../packet/roce.js';
import type { QueuePairOptions } from './nic-queue-pair.js';
import { ReceiveCompletions } from './receive-completions.js';
import type { QueuePairParts } from './transport.js';

type Parts = QueuePairOptions & Pick<QueuePairParts, 'link'>;

/** {@link Reassembler.place}: the bytes of the packet are in memory, and the message continues. */
export const PLACED = 0;
/** The same, and the message is whole: {@link Reassembler.complete} has to follow. */
export const PLACED_LAST = 1;
export const NOT_READY = 2;
export const REFUSED = 3;

const NO_MESSAGE = -1;

export class Reassembler {
  readonly #parts: Parts;
  readonly receives: ReceiveCompletions;
  #kind = 0;
  #startPsn = NO_MESSAGE;
  #receivedBytes = 0;
  #writeBytes = 0;
  readonly #writeRange = new MemoryRange();
  readonly #sink = new SgeCursor();
  /** Why the last packet was refused: the syndrome of the NAK, and the status of a receive WQE in use. */
  refusedSyndrome = 0;
  refusedStatus = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.receives = new ReceiveCompletions(parts);
  }

  get isInMessage(): boolean {
    return this.#kind !== 0;
  }

  /** PSN of the first packet of the message in progress; -1 between messages. */
  get startPsn(): number {
    return this.#startPsn;
  }

  /** Drops the message in progress; a receive WQE it took stays with the queue pair, for the next one. */
  endMessage(): void {
    this.#kind = 0;
    this.#startPsn = NO_MESSAGE;
    this.#receivedBytes = 0;
  }

  /** True if the packet continues the message in progress, or begins one between messages (IBTA §9.7.4.1.2). */
  isInSequence({ info }: RocePacket): boolean {
    const continues = info.place === op.PLACE_MIDDLE || info.place === op.PLACE_LAST;
    return continues ? this.#kind === info.kind : this.#kind === 0;
  }

  place(packet: RocePacket, bytes: Uint8Array): number {
    return packet.info.kind === op.OP_SEND ? this.#placeSend(packet, bytes) : this.#placeWrite(packet, bytes);
  }

  #begin(kind: number, psn: number): void {
    this.#kind = kind;
    this.#startPsn = psn;
    this.#receivedBytes = 0;
  }

  #refuse(syndrome: number, status: number): number {
    this.refusedSyndrome = syndrome;
    this.refusedStatus = status;
    return REFUSED;
  }

  /** The payload length that the position in the message requires (IBTA §9.7.4.1.6). */
  #lengthFits(packet: RocePacket): boolean {
    const mtu = this.#parts.link.mtuBytes;
    switch (packet.info.place) {
      case op.PLACE_FIRST:
      case op.PLACE_MIDDLE:
        return packet.payloadBytes === mtu && packet.padBytes === 0;
      case op.PLACE_LAST:
        return packet.payloadBytes >= 1 && packet.payloadBytes <= mtu;
      default:
        return packet.payloadBytes <= mtu;
    }
  }

  #placeSend(packet: RocePacket, bytes: Uint8Array): number {
    const { place } = packet.info;
    const begins = place === op.PLACE_FIRST || place === op.PLACE_ONLY;
    if (begins && !this.receives.bind()) return NOT_READY;
    if (!this.#lengthFits(packet)) return this.#refuse(NAK_INVALID_REQUEST, STATUS_REM_INV_REQ_ERR);
    if (begins) {
      this.#begin(op.OP_SEND, packet.psn);
      const { host, pd } = this.#parts;
      if (!this.#sink.load(this.receives.wqe.sges, host.keys, pd, ACCESS_LOCAL_WRITE)) {
        return this.#refuse(NAK_REMOTE_OPERATION, STATUS_LOC_PROT_ERR);
      }
    } else if (!this.#sink.stillValid) return this.#refuse(NAK_REMOTE_OPERATION, STATUS_LOC_PROT_ERR);
    if (this.#receivedBytes + packet.payloadBytes > this.#sink.totalBytes) {
      return this.#refuse(NAK_INVALID_REQUEST, STATUS_LOC_LEN_ERR);
    }
    if (this.#parts.host.carriesPayload) {
      this.#sink.scatter(this.#receivedBytes, packet.payloadBytes, bytes, packet.payloadOffset);
      if (!this.#sink.stillValid) return this.#refuse(NAK_REMOTE_OPERATION, STATUS_LOC_PROT_ERR);
    }
    this.#receivedBytes += packet.payloadBytes;
    return place === op.PLACE_LAST || place === op.PLACE_ONLY ? PLACED_LAST : PLACED;
  }

  #placeWrite(packet: RocePacket, bytes: Uint8Array): number {
    const { place, headers } = packet.info;
    const begins = place === op.PLACE_FIRST || place === op.PLACE_ONLY;
    const ends = place === op.PLACE_LAST || place === op.PLACE_ONLY;
    if ((this.#parts.attributes.accessFlags & ACCESS_REMOTE_WRITE) === 0) {
      return this.#refuse(NAK_INVALID_REQUEST, STATUS_REM_INV_REQ_ERR);
    }
    if ((headers & op.HDR_IMM) !== 0 && !this.receives.bind()) return NOT_READY;
    if (!this.#lengthFits(packet) || (begins && packet.dmaLength > MESSAGE_BYTES_MAX)) {
      return this.#refuse(NAK_INVALID_REQUEST, STATUS_REM_INV_REQ_ERR);
    }
    const total = begins ? packet.dmaLength : this.#writeBytes;
    const received = begins ? 0 : this.#receivedBytes;
    // The message must have exactly the length in its RETH.
    if (ends ? received + packet.payloadBytes !== total : received + packet.payloadBytes >= total) {
      return this.#refuse(NAK_INVALID_REQUEST, STATUS_REM_INV_REQ_ERR);
    }
    const range = this.#writeRange;
    if (begins) {
      // A message of zero bytes does not access memory, so its key is not checked (IBTA C9-88).
      if (total > 0 && !resolveRemote(this.#parts, packet, total, ACCESS_REMOTE_WRITE, range)) {
        return this.#refuse(NAK_REMOTE_ACCESS, STATUS_REM_INV_REQ_ERR);
      }
      this.#begin(op.OP_WRITE, packet.psn);
      this.#writeBytes = total;
    } else if (!range.stillValid) return this.#refuse(NAK_REMOTE_ACCESS, STATUS_REM_INV_REQ_ERR);
    if (this.#parts.host.carriesPayload && packet.payloadBytes > 0) {
      range.place(received, bytes, packet.payloadOffset, packet.payloadBytes);
      if (!range.stillValid) return this.#refuse(NAK_REMOTE_ACCESS, STATUS_REM_INV_REQ_ERR);
    }
    this.#receivedBytes = received + packet.payloadBytes;
    return ends ? PLACED_LAST : PLACED;
  }

  /**
   * False when the key that a SEND asks to invalidate cannot be: the receive WQE has completed with an error, and the
   * queue pair must stop.
   */
  complete(packet: RocePacket): boolean {
    return packet.info.kind === op.OP_SEND ? this.#completeSend(packet) : this.#completeWrite(packet);
  }

  #completeSend(packet: RocePacket): boolean {
    const { host, pd, qpn } = this.#parts;
    const { headers } = packet.info;
    const bytes = this.#receivedBytes;
    host.counters[COUNTER.rx_send_messages]++;
    this.endMessage();
    let flags = packet.solicited ? WC_FLAG_SOLICITED : 0;
    let immediate = 0;
    if ((headers & op.HDR_IMM) !== 0) {
      flags |= WC_FLAG_WITH_IMM;
      immediate = packet.immediate;
    } else if ((headers & op.HDR_IETH) !== 0) {
      flags |= WC_FLAG_WITH_INV;
      immediate = packet.invalidateRkey;
      if (!host.keys.invalidate(packet.invalidateRkey, pd, qpn)) {
        this.receives.complete(STATUS_REM_INV_REQ_ERR, WC_RECV, 0, 0, 0);
        return false;
      }
    }
    this.receives.complete(STATUS_SUCCESS, WC_RECV, flags, bytes, immediate);
    return true;
  }

  #completeWrite(packet: RocePacket): boolean {
    const bytes = this.#writeBytes;
    this.#parts.host.counters[COUNTER.rx_write_requests]++;
    this.endMessage();
    if ((packet.info.headers & op.HDR_IMM) !== 0) {
      const flags = WC_FLAG_WITH_IMM | (packet.solicited ? WC_FLAG_SOLICITED : 0);
      this.receives.complete(STATUS_SUCCESS, WC_RECV_RDMA_WITH_IMM, flags, bytes, packet.immediate);
    }
    return true;
  }
}

/** False: the access is not allowed (NAK 0x62). */
export function resolveRemote(
  { host, pd, qpn }: QueuePairOptions,
  packet: RocePacket,
  lengthBytes: number,
  access: number,
  out: MemoryRange,
): boolean {
  const { rkey, vaHigh, vaLow } = packet;
  return host.keys.resolve(rkey, pd, qpn, vaHigh, vaLow, lengthBytes, access, out) === MEMORY_OK;
}
