/**
 * Selective repeat in the manner of IRN (Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018): the receiver keeps what
 * arrives ahead of a gap in a bounded store and reports it as a bitmap; the sender sends only what is missing. An extension between
 * our own endpoints.
 *
 * What is kept is executed when the gap before it is filled, so the store is where a stranger who does not know the PSN would aim. It takes only what
 * the window lets the peer have in flight, and no packet wins over another: of two that differ neither is kept, and the peer sends its own again.
 *
 * A packet counts as lost once a later one was delivered. A packet already sent again counts as lost again only when something sent
 * after that second copy was delivered, or at a timeout.
 */

import { psnAdd, psnDiff } from '../packet/psn.js';
import { asksForLess, isSameRequest } from '../packet/same-request.js';
import {
  AHEAD_CONFLICT,
  AHEAD_DROPPED,
  AHEAD_KEPT,
  defineRecovery,
  type KeptPacket,
  LOSS_TIMEOUT,
  NO_REWIND,
  REPLAY_APPEND,
  ReceiverRecovery,
  SenderRecovery,
} from './recovery.js';

/** PSNs that sender and receiver keep account of; a power of two, and what the largest SACK bitmap (128 bytes) can report. */
export const SELECTIVE_SPAN = 1024;
const MASK = SELECTIVE_SPAN - 1;
/** The largest path MTU and room for headers: nothing longer is kept, so that a store holds 4 MiB at most. */
const KEPT_BYTES_MAX = 4096 + 64;

const OUTSTANDING = 0;
const DELIVERED = 1;
const LOST = 2;
const RESENT = 3;
/** Held by the receiver behind a gap, not executed: it is not sent again, and not done either. */
const KEPT = 4;

/** Sends again what the bitmap, or a timeout, says is missing. */
export class SelectiveRepeatSender extends SenderRecovery {
  override readonly goesBack = false;
  /** At most {@link SELECTIVE_SPAN}: what the accounts hold. */
  override readonly inFlightMax: number = SELECTIVE_SPAN;
  readonly #state = new Uint8Array(SELECTIVE_SPAN);
  /** For RESENT: the next new PSN at the time of the second copy. */
  readonly #resentBefore = new Uint32Array(SELECTIVE_SPAN);
  #lost = 0;
  #done = 0;

  override reset(psn: number): void {
    this.#state.fill(OUTSTANDING);
    this.#lost = 0;
    this.#done = psn;
  }

  override onLoss(first: number, end: number, _messageStart: number, _next: number, cause: number): number {
    const newestDelivered = psnAdd(end, -1);
    for (let psn = first; psn !== end; psn = psnAdd(psn, 1)) {
      const i = psn & MASK;
      const state = this.#state[i];
      const lostAgain =
        state === RESENT && (cause === LOSS_TIMEOUT || psnDiff(newestDelivered, this.#resentBefore[i]) >= 0);
      // What the receiver expects next it does not have: it kept that packet and then had to refuse it.
      const refused = state === KEPT && psn === first;
      if (state === OUTSTANDING || lostAgain || refused) {
        this.#state[i] = LOST;
        this.#lost++;
      }
    }
    return NO_REWIND;
  }

  override markDelivered(psn: number): void {
    this.#settle(psn, DELIVERED);
  }

  override markKept(psn: number): void {
    this.#settle(psn, KEPT);
  }

  #settle(psn: number, state: number): void {
    const i = psn & MASK;
    if (this.#state[i] === LOST) this.#lost--;
    this.#state[i] = state;
  }

  override isDelivered(psn: number): boolean {
    return this.#state[psn & MASK] === DELIVERED;
  }

  override advance(psn: number): number {
    while (this.#done !== psn) this.#forget();
    while (this.#state[this.#done & MASK] === DELIVERED) this.#forget();
    return this.#done;
  }

  /** Frees the account of the oldest PSN: the slot will serve the PSN one span later. */
  #forget(): void {
    const i = this.#done & MASK;
    if (this.#state[i] === LOST) this.#lost--;
    this.#state[i] = OUTSTANDING;
    this.#done = psnAdd(this.#done, 1);
  }

  override nextResend(unacked: number, next: number): number {
    if (this.#lost === 0) return -1;
    for (let psn = unacked; psn !== next; psn = psnAdd(psn, 1)) if (this.#state[psn & MASK] === LOST) return psn;
    return -1;
  }

  override onResent(psn: number, next: number): void {
    const i = psn & MASK;
    if (this.#state[i] === LOST) this.#lost--;
    this.#state[i] = RESENT;
    this.#resentBefore[i] = next;
  }
}

/** Of a slot that has never kept a packet. */
const NO_BYTES = new Uint8Array(0);

/** One kept packet; its buffer is reused when the packet has been taken and the next one comes. */
class Kept implements KeptPacket {
  bytes = NO_BYTES;
  length = 0;
  present = false;
  /** It was executed; the bytes stay, to be compared with a late copy. */
  taken = false;
  /** The slot also serves PSNs one span away: a packet that was stepped over (inside a READ asked for anew) must not pass for them. */
  psn = 0;

  /** It has a packet with this PSN. */
  holds(psn: number): boolean {
    return this.present && this.psn === psn;
  }

  /** The packet that it has, or had, asks for the same as this one. */
  isCopyOf(bytes: Uint8Array, offset: number, length: number): boolean {
    return length === this.length && isSameRequest(this.bytes, 0, bytes, offset, length);
  }
}

/** Keeps what comes behind a gap: as many packets as the peer may have in flight, {@link SELECTIVE_SPAN} at most. */
export class SelectiveRepeatReceiver extends ReceiverRecovery {
  override readonly replay = REPLAY_APPEND;
  readonly #slots: Kept[] = Array.from({ length: SELECTIVE_SPAN }, () => new Kept());
  #count = 0;
  #span = SELECTIVE_SPAN;

  override reset(windowPackets: number): void {
    for (const slot of this.#slots) {
      slot.present = false;
      slot.taken = false;
    }
    this.#count = 0;
    this.#span = Math.min(SELECTIVE_SPAN, windowPackets);
  }

  override onAhead(psn: number, distance: number, bytes: Uint8Array, offset: number, length: number): number {
    if (distance >= this.#span || length > KEPT_BYTES_MAX) return AHEAD_DROPPED;
    const slot = this.#slots[psn & MASK];
    if (slot.holds(psn)) {
      if (!slot.isCopyOf(bytes, offset, length)) {
        slot.present = false;
        this.#count--;
        return AHEAD_CONFLICT;
      }
      // Of two lengths of a READ the smaller: it steps over no PSN of another request, and what is missing will be asked for.
      if (!asksForLess(bytes, offset, slot.bytes, 0)) return AHEAD_KEPT;
    }
    if (slot.bytes.length < length) slot.bytes = new Uint8Array(length);
    slot.bytes.set(bytes.subarray(offset, offset + length));
    slot.length = length;
    slot.psn = psn;
    if (!slot.present) this.#count++;
    slot.present = true;
    slot.taken = false;
    return AHEAD_KEPT;
  }

  override isOtherThanTaken(psn: number, bytes: Uint8Array, offset: number, length: number): boolean {
    const slot = this.#slots[psn & MASK];
    return slot.taken && slot.psn === psn && !slot.isCopyOf(bytes, offset, length);
  }

  #holds(psn: number): boolean {
    return this.#slots[psn & MASK].holds(psn);
  }

  override takeKept(expected: number): KeptPacket | undefined {
    if (this.#count === 0) return undefined;
    const slot = this.#slots[expected & MASK];
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
      if (!this.#holds(psnAdd(expected, 1 + i))) continue;
      highest = i;
      left--;
    }
    return ((highest >> 5) + 1) * 4; // None at all: -1 >> 5 is -1.
  }

  override writeBitmap(expected: number, bytes: Uint8Array, offset: number, length: number): void {
    bytes.fill(0, offset, offset + length);
    for (let i = 0; i < length * 8; i++) {
      if (this.#holds(psnAdd(expected, 1 + i))) bytes[offset + (i >>> 3)] |= 1 << (i & 7);
    }
  }
}

/** The definition for the registry. */
export const selectiveRepeat = defineRecovery({
  name: 'selective-repeat',
  summary: 'the receiver keeps what it has, only what is missing is sent again',
  parameters: {},
  usesSack: true,
  /** What is lost is sent again, and nothing else: 1 - 1/K, or 1 - p. */
  efficiency: (loss) => 1 - (loss.kind === 'regular' ? 1 / loss.period : loss.probability),
  sender: () => new SelectiveRepeatSender(),
  receiver: () => new SelectiveRepeatReceiver(),
});
