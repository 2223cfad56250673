/**
 * The receiver's half of credit (dcqcn/rccc.ts): credit that one connection was granted, has used, and wants. All
 * connections of a NIC share one scheduler.
 *
 * The demand that the peer announces is untrusted, and bounded by its in-flight limit.
 */

import type { CreditTaker } from '../dcqcn/credit-scheduler.js';
import { linkOverheadBytes } from '../packet/frame.js';
import { INT_DATA_CREDIT, intTrailerBytes } from '../packet/int-trailer.js';
import { BTH_BYTES, ICRC_BYTES } from '../packet/roce.js';
import type { QueuePairParts } from './transport.js';

type Parts = Pick<QueuePairParts, 'host' | 'link' | 'congestion'>;

/** Totals are modulo 2^32. */
export class ReceiverCreditState implements CreditTaker {
  readonly #parts: Parts;
  readonly #tell: (granted: number) => void;
  #arrived = 0;
  #granted = 0;
  #target = 0;
  #packetNs = 0;
  #maximum = 0;

  constructor(parts: Parts, tell: (granted: number) => void) {
    this.#parts = parts;
    this.#tell = tell;
  }

  reset(): void {
    this.#parts.host.creditScheduler.leave(this);
    this.#arrived = 0;
    this.#granted = 0;
    this.#target = 0;
  }

  get packetNs(): number {
    return this.#packetNs;
  }

  get wanted(): number {
    const onTheWay = since(this.#granted, this.#arrived);
    return Math.min(since(this.#target, this.#granted), this.#maximum - onTheWay);
  }

  grant(packets: number): void {
    this.#granted = (this.#granted + packets) >>> 0;
    this.#tell(this.#granted);
  }

  /** A data packet has arrived whose sender announces `wanted` more. */
  onData(wanted: number, now: number): void {
    this.#arrived = (this.#arrived + 1) >>> 0;
    this.#wants(wanted, now);
  }

  /** A packet was trimmed on the path: its sender has to retransmit it. */
  onTrimmed(now: number): void {
    this.#wants(1, now);
  }

  #wants(wanted: number, now: number): void {
    const { creditRateBps, creditLeadNs, creditMaximumBytes } = this.#parts.congestion.control.rate;
    const { host, link } = this.#parts;
    const { mtuBytes, path } = link;
    this.#maximum = Math.max(1, Math.floor(creditMaximumBytes / mtuBytes));
    const target = (this.#arrived + Math.min(wanted, this.#maximum)) >>> 0;
    if (since(target, this.#target) > 0) this.#target = target;
    if (creditRateBps === 0) {
      this.#grantAll();
      return;
    }
    const bytes =
      mtuBytes + BTH_BYTES + ICRC_BYTES + intTrailerBytes(INT_DATA_CREDIT) + linkOverheadBytes(path.remote.family);
    this.#packetNs = (bytes * 8e9) / creditRateBps;
    const { creditScheduler, pacingCatchUpNs } = host;
    const uncredited = since(this.#arrived, this.#granted);
    if (uncredited > 0) {
      creditScheduler.charge(uncredited * this.#packetNs, creditLeadNs, now);
      this.#granted = this.#arrived;
      this.#tell(this.#granted);
    }
    if (this.wanted > 0) creditScheduler.join(this, creditLeadNs, now);
    creditScheduler.onDue(now, Math.max(creditLeadNs, pacingCatchUpNs));
  }

  /** This side has no pacer: the whole demand is granted. */
  #grantAll(): void {
    const packets = Math.max(since(this.#target, this.#granted), since(this.#arrived, this.#granted));
    if (packets > 0) this.grant(packets);
  }
}

/** How far `sum` is ahead of `other`, at most 2^31; negative if it is behind. */
function since(sum: number, other: number): number {
  return (sum - other) | 0;
}
