/** What a sender knows of each packet in flight, for schemes that send only what is missing. How it concludes that one is lost is up to the scheme. */

import { psnAdd } from '../packet/psn.js';
import { SenderRecovery } from './recovery.js';

/** PSNs that sender and receiver keep account of; a power of two, and what the largest SACK bitmap (128 bytes) can report. */
export const SELECTIVE_SPAN = 1024;
/** The slot of a PSN is its low bits. */
export const SPAN_MASK = SELECTIVE_SPAN - 1;

/** Sent once. */
export const OUTSTANDING = 0;
/** Its answer has been placed. */
export const DELIVERED = 1;
/** To be sent again. */
export const LOST = 2;
/** Sent again. */
export const RESENT = 3;
/** Held by the receiver behind a gap, not executed: it is not sent again, and not done either. */
export const KEPT = 4;

/** The sender's half of such a scheme, all but the judgement of losses. */
export abstract class PacketAccounts extends SenderRecovery {
  override readonly goesBack = false;
  /** At most {@link SELECTIVE_SPAN}: what the accounts hold. */
  override readonly inFlightMax: number = SELECTIVE_SPAN;
  /** OUTSTANDING ... KEPT, by slot. */
  protected readonly state = new Uint8Array(SELECTIVE_SPAN);
  #lost = 0;
  #arrived = 0;
  #done = 0;

  override reset(psn: number): void {
    this.state.fill(OUTSTANDING);
    this.#lost = 0;
    this.#arrived = 0;
    this.#done = psn;
  }

  override markDelivered(psn: number): void {
    this.#settle(psn, DELIVERED);
  }

  override markKept(psn: number): void {
    this.#settle(psn, KEPT);
  }

  /** `psn` is to be sent again. */
  protected markLost(psn: number): void {
    this.#settle(psn, LOST);
  }

  #settle(psn: number, state: number): void {
    const i = psn & SPAN_MASK;
    const before = this.state[i];
    this.#lost += Number(state === LOST) - Number(before === LOST);
    this.#arrived += Number(hasArrived(state)) - Number(hasArrived(before));
    this.state[i] = state;
  }

  override isDelivered(psn: number): boolean {
    return this.state[psn & SPAN_MASK] === DELIVERED;
  }

  override get arrived(): number {
    return this.#arrived;
  }

  override advance(psn: number): number {
    while (this.#done !== psn) this.#forget();
    while (this.state[this.#done & SPAN_MASK] === DELIVERED) this.#forget();
    return this.#done;
  }

  /** Frees the account of the oldest PSN: the slot will serve the PSN one span later. */
  #forget(): void {
    this.#settle(this.#done, OUTSTANDING);
    this.#done = psnAdd(this.#done, 1);
  }

  /** The oldest PSN that the accounts hold. */
  protected get oldest(): number {
    return this.#done;
  }

  override nextResend(unacked: number, next: number): number {
    if (this.#lost === 0) return -1;
    for (let psn = unacked; psn !== next; psn = psnAdd(psn, 1)) if (this.state[psn & SPAN_MASK] === LOST) return psn;
    return -1;
  }

  override onResent(psn: number, _next: number): void {
    this.#settle(psn, RESENT);
  }
}

function hasArrived(state: number): boolean {
  return state === DELIVERED || state === KEPT;
}
