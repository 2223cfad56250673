/**
 * The sender's state of each packet in flight, for schemes that retransmit only missing packets. The scheme decides
 * when one counts as lost.
 */

import { psnAdd } from '../packet/psn.js';
import { SenderRecovery } from './recovery.js';

/**
 * PSNs that sender and receiver track: as many as the largest SACK bitmap (128 bytes) reports, a power of two.
 */
export const SELECTIVE_SPAN = 1024;
/** `psn & SPAN_MASK` is the slot of a PSN in {@link PacketAccounts.state}. */
export const SPAN_MASK = SELECTIVE_SPAN - 1;

/** A state of {@link PacketAccounts}: sent once. */
export const PACKET_OUTSTANDING = 0;
/** A state of {@link PacketAccounts}: its answer has been placed. */
export const PACKET_DELIVERED = 1;
/** A state of {@link PacketAccounts}: to be retransmitted. */
export const PACKET_LOST = 2;
/** A state of {@link PacketAccounts}: retransmitted. */
export const PACKET_RESENT = 3;
/**
 * A state of {@link PacketAccounts}: buffered by the receiver after a gap, and not executed. It is neither
 * retransmitted nor done.
 */
export const PACKET_SACKED = 4;

/** The sender's half of such a scheme, except loss detection. */
export abstract class PacketAccounts extends SenderRecovery {
  override readonly goesBack = false;
  /** At most {@link SELECTIVE_SPAN}: what the accounts hold. */
  override readonly inFlightMax: number = SELECTIVE_SPAN;
  /**
   * By slot, `psn & SPAN_MASK`: one of PACKET_OUTSTANDING, PACKET_DELIVERED, PACKET_LOST, PACKET_RESENT, PACKET_SACKED.
   * The methods write it.
   */
  protected readonly state = new Uint8Array(SELECTIVE_SPAN);
  #lost = 0;
  #arrived = 0;
  #done = 0;

  override reset(psn: number): void {
    this.state.fill(PACKET_OUTSTANDING);
    this.#lost = 0;
    this.#arrived = 0;
    this.#done = psn;
  }

  override markDelivered(psn: number): void {
    this.#settle(psn, PACKET_DELIVERED);
  }

  override markSacked(psn: number): void {
    this.#settle(psn, PACKET_SACKED);
  }

  /** `psn` is to be retransmitted. */
  protected markLost(psn: number): void {
    this.#settle(psn, PACKET_LOST);
  }

  #settle(psn: number, state: number): void {
    const i = psn & SPAN_MASK;
    const before = this.state[i];
    this.#lost += Number(state === PACKET_LOST) - Number(before === PACKET_LOST);
    this.#arrived += Number(hasArrived(state)) - Number(hasArrived(before));
    this.state[i] = state;
  }

  override isDelivered(psn: number): boolean {
    return this.state[psn & SPAN_MASK] === PACKET_DELIVERED;
  }

  override get arrived(): number {
    return this.#arrived;
  }

  override advance(psn: number): number {
    while (this.#done !== psn) this.#forget();
    while (this.state[this.#done & SPAN_MASK] === PACKET_DELIVERED) this.#forget();
    return this.#done;
  }

  /** Frees the account of the oldest PSN: the slot will serve the PSN one span later. */
  #forget(): void {
    this.#settle(this.#done, PACKET_OUTSTANDING);
    this.#done = psnAdd(this.#done, 1);
  }

  /** The oldest PSN that the accounts hold. */
  protected get oldest(): number {
    return this.#done;
  }

  override nextResend(unacked: number, next: number): number {
    if (this.#lost === 0) return -1;
    for (let psn = unacked; psn !== next; psn = psnAdd(psn, 1))
      if (this.state[psn & SPAN_MASK] === PACKET_LOST) return psn;
    return -1;
  }

  override onResent(psn: number, _next: number): void {
    this.#settle(psn, PACKET_RESENT);
  }
}

function hasArrived(state: number): boolean {
  return state === PACKET_DELIVERED || state === PACKET_SACKED;
}
