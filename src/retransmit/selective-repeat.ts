/**
 * Selective repeat in the manner of IRN (Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018): the
 * receiver buffers packets ahead of a gap in a bounded store and reports them as a bitmap; the sender retransmits only
 * missing packets. An extension between our own endpoints.
 *
 * Buffered packets are executed when the gap before them is filled, so an attacker without the exact PSN would target
 * the store. It accepts only packets within the peer's window. Of two packets that differ neither stays, and the peer
 * retransmits its own.
 *
 * A packet counts as lost once a later one was delivered. A retransmitted packet counts as lost again only when a
 * packet sent after the retransmission was delivered, or at a timeout.
 */

import { psnAdd, psnDiff } from '../packet/psn.js';
import { asksForLess, isSameRequest } from '../packet/same-request.js';
import {
  PACKET_OUTSTANDING,
  PACKET_RESENT,
  PACKET_SACKED,
  PacketAccounts,
  SELECTIVE_SPAN,
  SPAN_MASK,
} from './packet-accounts.js';
import {
  AHEAD_BUFFERED,
  AHEAD_CONFLICT,
  AHEAD_DROPPED,
  type BufferedPacket,
  defineRecovery,
  LOSS_TIMEOUT,
  NO_REWIND,
  REPLAY_APPEND,
  ReceiverRecovery,
} from './recovery.js';

/** The largest path MTU and room for headers: nothing longer is buffered, so that a store holds 4 MiB at most. */
const BUFFERED_BYTES_MAX = 4096 + 64;

/** Retransmits what the bitmap, or a timeout, shows as missing. */
export class SelectiveRepeatSender extends PacketAccounts {
  /** For PACKET_RESENT: the next new PSN at the time of the second copy. */
  readonly #resentBefore = new Uint32Array(SELECTIVE_SPAN);

  override onLoss(first: number, end: number, _messageStart: number, _next: number, cause: number): number {
    const newestDelivered = psnAdd(end, -1);
    for (let psn = first; psn !== end; psn = psnAdd(psn, 1)) {
      const i = psn & SPAN_MASK;
      const state = this.state[i];
      const lostAgain =
        state === PACKET_RESENT && (cause === LOSS_TIMEOUT || psnDiff(newestDelivered, this.#resentBefore[i]) >= 0);
      // The receiver lacks the packet that it expects next: it buffered that packet and then had to refuse it.
      const refused = state === PACKET_SACKED && psn === first;
      if (state === PACKET_OUTSTANDING || lostAgain || refused) this.markLost(psn);
    }
    return NO_REWIND;
  }

  override onResent(psn: number, next: number): void {
    super.onResent(psn, next);
    this.#resentBefore[psn & SPAN_MASK] = next;
  }
}

/** Of a slot that has never had a packet. */
const NO_BYTES = new Uint8Array(0);

/** One buffered packet; its buffer is reused when the packet has been taken and the next one comes. */
class BufferSlot implements BufferedPacket {
  bytes = NO_BYTES;
  length = 0;
  present = false;
  /** It was executed; the bytes stay, to be compared with a late copy. */
  taken = false;
  /**
   * The slot also serves PSNs one span away: a packet that was skipped (inside a repeated READ) must not match them.
   */
  psn = 0;

  holds(psn: number): boolean {
    return this.present && this.psn === psn;
  }

  /** The packet that it has, or had, is the same request as this one. */
  isCopyOf(bytes: Uint8Array, offset: number, length: number): boolean {
    return length === this.length && isSameRequest(this.bytes, 0, bytes, offset, length);
  }
}

/** Buffers packets after a gap: as many as the peer may have in flight, {@link SELECTIVE_SPAN} at most. */
export class SelectiveRepeatReceiver extends ReceiverRecovery {
  override readonly replay = REPLAY_APPEND;
  readonly #slots: BufferSlot[] = Array.from({ length: SELECTIVE_SPAN }, () => new BufferSlot());
  #count = 0;
  #span = SELECTIVE_SPAN;

  /** Nothing is buffered. */
  protected get isBufferEmpty(): boolean {
    return this.#count === 0;
  }

  override reset(windowPackets: number): void {
    for (const slot of this.#slots) {
      slot.present = false;
      slot.taken = false;
    }
    this.#count = 0;
    this.#span = Math.min(SELECTIVE_SPAN, windowPackets);
  }

  override onAhead(psn: number, distance: number, bytes: Uint8Array, offset: number, length: number): number {
    if (distance >= this.#span || length > BUFFERED_BYTES_MAX) return AHEAD_DROPPED;
    const slot = this.#slots[psn & SPAN_MASK];
    if (slot.holds(psn)) {
      if (!slot.isCopyOf(bytes, offset, length)) {
        slot.present = false;
        this.#count--;
        return AHEAD_CONFLICT;
      }
      // The smaller of two lengths of a READ: it skips no PSN of another request, and the rest will be requested.
      if (!asksForLess(bytes, offset, slot.bytes, 0)) return AHEAD_BUFFERED;
    }
    if (slot.bytes.length < length) slot.bytes = new Uint8Array(length);
    slot.bytes.set(bytes.subarray(offset, offset + length));
    slot.length = length;
    slot.psn = psn;
    if (!slot.present) this.#count++;
    slot.present = true;
    slot.taken = false;
    return AHEAD_BUFFERED;
  }

  override isConflictingDuplicate(psn: number, bytes: Uint8Array, offset: number, length: number): boolean {
    const slot = this.#slots[psn & SPAN_MASK];
    return slot.taken && slot.psn === psn && !slot.isCopyOf(bytes, offset, length);
  }

  override holds(psn: number): boolean {
    return this.#slots[psn & SPAN_MASK].holds(psn);
  }

  override takeBuffered(expected: number): BufferedPacket | undefined {
    if (this.#count === 0) return undefined;
    const slot = this.#slots[expected & SPAN_MASK];
    if (!slot.present) return undefined;
    slot.present = false;
    this.#count--;
    slot.taken = slot.psn === expected;
    return slot.taken ? slot : undefined;
  }

  override bitmapBytes(expected: number): number {
    if (this.#count === 0) return 0;
    let left = this.#count;
    let highest = -1;
    for (let i = 0; left > 0 && i < SELECTIVE_SPAN - 1; i++) {
      if (!this.holds(psnAdd(expected, 1 + i))) continue;
      highest = i;
      left--;
    }
    return ((highest >> 5) + 1) * 4; // -1 >> 5 is -1: none at all.
  }

  override writeBitmap(expected: number, bytes: Uint8Array, offset: number, length: number): void {
    bytes.fill(0, offset, offset + length);
    for (let i = 0; i < length * 8; i++) {
      if (this.holds(psnAdd(expected, 1 + i))) bytes[offset + (i >>> 3)] |= 1 << (i & 7);
    }
  }
}

export const selectiveRepeat = defineRecovery({
  name: 'selective-repeat',
  summary: 'retransmits only missing packets; the receiver stores the others',
  parameters: {},
  usesSack: true,
  /** Only lost packets are retransmitted: 1 - 1/K, or 1 - p. */
  efficiency: (loss) => 1 - (loss.kind === 'regular' ? 1 / loss.period : loss.probability),
  sender: () => new SelectiveRepeatSender(),
  receiver: () => new SelectiveRepeatReceiver(),
});
